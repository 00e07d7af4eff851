CREATE TABLE bench.bluesky
(
  data JSON(
    max_dynamic_paths = 0,
    kind LowCardinality(String),
    commit.operation LowCardinality(String),
    commit.collection LowCardinality(String),
    did String,
    time_us UInt64) CODEC(ZSTD(1))
)
ENGINE = MergeTree
ORDER BY (
  data.kind,
  data.commit.operation,
  data.commit.collection,
  data.did,
  fromUnixTimestamp64Micro(data.time_us))
