"""The five queries on a `polars.LazyFrame` of the paths that they read."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

__all__ = ["COLUMNS", "QUERIES"]

COLUMNS = {
    "kind": "data:kind::string",
    "operation": "data:commit.operation::string",
    "event": "data:commit.collection::string",
    "did": "data:did::string",
    "time_us": "data:time_us::bigint",
}

IS_CREATED = (pl.col("kind") == "commit") & (pl.col("operation") == "create")
IS_POST = IS_CREATED & (pl.col("event") == "app.bsky.feed.post")
SHOWN = ("app.bsky.feed.post", "app.bsky.feed.repost", "app.bsky.feed.like")


def count_events(frame: pl.LazyFrame) -> pl.LazyFrame:
    counts = frame.group_by("event").agg(pl.len().alias("count"))
    return counts.sort("count", "event", descending=[True, False])


def count_users(frame: pl.LazyFrame) -> pl.LazyFrame:
    figures = pl.len().alias("count"), pl.col("did").n_unique().alias("users")
    counts = frame.filter(IS_CREATED).group_by("event").agg(*figures)
    return counts.sort("count", "event", descending=[True, False])


def count_hours(frame: pl.LazyFrame) -> pl.LazyFrame:
    hour = pl.from_epoch("time_us", time_unit="us").dt.hour().alias("hour_of_day")
    shown = frame.filter(IS_CREATED & pl.col("event").is_in(SHOWN))
    return shown.group_by("event", hour).agg(pl.len().alias("count")).sort("hour_of_day", "event")


def first_posts(frame: pl.LazyFrame) -> pl.LazyFrame:
    first = pl.from_epoch(pl.col("time_us").min(), time_unit="us").alias("first_post")
    return frame.filter(IS_POST).group_by("did").agg(first).sort("first_post").head(3)


def longest_spans(frame: pl.LazyFrame) -> pl.LazyFrame:
    milliseconds = pl.col("time_us") // 1000
    span = (milliseconds.max() - milliseconds.min()).alias("activity_span")
    return frame.filter(IS_POST).group_by("did").agg(span).sort("activity_span", descending=True).head(3)


QUERIES: tuple[Callable[[pl.LazyFrame], pl.LazyFrame], ...] = (
    count_events,
    count_users,
    count_hours,
    first_posts,
    longest_spans,
)
