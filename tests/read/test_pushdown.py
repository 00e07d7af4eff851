"""Random filters and projections of pyarrow, DuckDB and Polars on a dataset return the rows of an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support import pushdown

pytestmark = pytest.mark.slow

SEEDS = range(1000)
PART = 100


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sequence[pushdown.Source]:
    return pushdown.sources(tmp_path_factory.mktemp("pushdown") / "t")


@pytest.mark.parametrize("first", range(0, len(SEEDS), PART))
def test_engines_return_the_rows_of_the_oracle(first: int, sources: Sequence[pushdown.Source]):
    assert list(pushdown.differences(SEEDS[first : first + PART], sources)) == []


def test_a_row_that_the_dataset_lacks_is_a_difference(sources: Sequence[pushdown.Source]):
    lacking = [replace(each, rows=[*each.rows, {**each.rows[0], "id": -1}]) for each in sources]
    assert any("missing" in found for found in pushdown.differences(range(20), lacking))


def test_most_filters_skip_files(sources: Sequence[pushdown.Source]):
    # A translation that returns nothing for most filters would also pass the comparison.
    source = sources[0]
    skipped = 0
    for seed in range(100):
        condition = pushdown.draw_filter(pushdown.Random(seed), source.rows, depth=0)
        skipped += len(list(source.dataset.get_fragments(condition.arrow))) < pushdown.FILES
    assert skipped > 30
