"""Tiles that copies past the registers are started for: each one once, and each used in order."""

from __future__ import annotations

from itertools import product

from polyblocks.affine.gpu.staged.copy_schedule import CopySchedule


def test_every_tile_is_used_once_and_copied_before() -> None:
    for steps, depth, stages in product(range(1, 40), (1, 2, 3, 16), (2, 3, 4)):
        schedule = CopySchedule.of(steps, depth, stages)
        count = -(-steps // depth)
        # The first tile precedes the loops; those of its stages are started with it.
        used = [0, *schedule.loop, *schedule.written_out, *schedule.quiet_loop]
        assert used == list(range(count))
        copying = [n for n in used[1:] if n < schedule.quiet_from]
        started = [*range(min(stages, count)), *(n + stages - 1 for n in copying)]
        assert started == list(range(count))


def test_loops_copy_only_tiles_whose_steps_exist() -> None:
    for steps, depth, stages in product(range(1, 40), (1, 2, 3, 16), (2, 3, 4)):
        schedule = CopySchedule.of(steps, depth, stages)
        assert all((n + stages) * depth <= steps for n in schedule.loop)
        assert all(n >= schedule.quiet_from for n in schedule.quiet_loop)
