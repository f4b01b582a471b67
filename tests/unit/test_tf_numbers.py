"""TensorFlow: which numbers change."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from polyblocks_tf.numbers.policy import MOST, Policy


def test_a_number_changes_with_its_second_value():
    policy = Policy([1.0, 2])
    assert policy.changing([1.0, 2]) == ()
    assert policy.changing([1.5, 2]) == (0,)
    assert policy.changing([1.0, 2]) == (0,)
    assert policy.changing([1.0, 3]) == (0, 1)
    policy.fix([0])
    assert policy.changing([9.0, 9]) == (1,)


def test_values_are_told_apart_as_texts():
    assert Policy([0.0]).changing([-0.0]) == (0,)
    assert Policy([float("nan")]).changing([float("nan")]) == ()


def test_many_numbers_are_data():
    count = MOST + 1
    assert Policy([0.0] * count).changing([1.0] * count) == ()
    assert len(Policy([0.0] * count).changing([1.0] * MOST + [0.0])) == MOST
