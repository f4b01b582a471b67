"""What `make test` leaves out of a sweep."""

from __future__ import annotations

import pytest
from sweeps import sweep


def test_all_but_those_named_are_slow():
    first, second, third = sweep([1, (2, 3), "x"], (2, 3))
    assert second == (2, 3)
    for left_out, value in ((first, 1), (third, "x")):
        assert left_out.values == (value,)
        assert [mark.name for mark in left_out.marks] == ["slow"]


def test_some_have_a_command_of_their_own():
    first, second, third = sweep([1, 2, 3], 1, extended=[3])
    assert first == 1
    assert [[mark.name for mark in value.marks] for value in (second, third)] == [
        ["slow"],
        ["extended"],
    ]


@pytest.mark.parametrize("always", [(), (4,), (1, 4)])
def test_a_name_that_is_none_of_the_values(always):
    with pytest.raises(ValueError, match=r"one or more of \[1, 2\] to stay, not (none|\[4\])"):
        sweep([1, 2], *always)
    with pytest.raises(ValueError, match=r"to stay, not \[3\]"):
        sweep([1, 2], 1, extended=[3])
