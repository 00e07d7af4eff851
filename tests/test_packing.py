"""Group items by their sizes."""

from __future__ import annotations

import random

from delta_variant._packing import pack_evenly


def evenly(sizes: list[int], parts: int, limit: int = 1 << 60) -> list[list[int]]:
    return list(pack_evenly(sizes, lambda size: size, sum(sizes), parts, limit))


def test_items_of_almost_equal_sizes_leave_no_rest():
    assert evenly([10, 11, 9, 11, 10, 9, 10, 10], 2) == [[10, 11, 9, 11], [10, 9, 10, 10]]
    assert evenly([7], 3) == [[7]]
    assert evenly([0, 0], 3) == [[0, 0]]
    assert evenly([], 3) == []


def test_each_run_is_at_most_an_item_larger_than_its_share():
    rng = random.Random(1)
    for _ in range(200):
        sizes, parts = [rng.randrange(50) for _ in range(rng.randrange(1, 40))], rng.randrange(1, 9)
        runs = evenly(sizes, parts)
        assert [size for run in runs for size in run] == sizes
        assert len(runs) <= parts
        assert max(map(sum, runs)) <= sum(sizes) / parts + max(sizes)


def test_larger_shares_than_the_limit_are_divided():
    assert evenly([5, 5, 5, 5], 1, limit=10) == [[5, 5], [5, 5]]
