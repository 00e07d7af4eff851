SELECT data.commit.collection::VARCHAR AS event, count(*) AS count
FROM read_parquet(getvariable('files'))
GROUP BY event
ORDER BY count DESC, event;

WITH creates AS MATERIALIZED (
  SELECT data.commit.collection::VARCHAR AS event, data.did::VARCHAR AS user_id
  FROM read_parquet(getvariable('files'))
  WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
)
SELECT event, count(*) AS count, count(DISTINCT user_id) AS users
FROM creates
GROUP BY event
ORDER BY count DESC, event;

SELECT
  data.commit.collection::VARCHAR AS event,
  extract(hour FROM make_timestamp(data.time_us::BIGINT)) AS hour_of_day,
  count(*) AS count
FROM read_parquet(getvariable('files'))
WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
  AND data.commit.collection::VARCHAR IN ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')
GROUP BY event, hour_of_day
ORDER BY hour_of_day, event;

SELECT data.did::VARCHAR AS user_id, min(make_timestamp(data.time_us::BIGINT)) AS first_post
FROM read_parquet(getvariable('files'))
WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
  AND data.commit.collection::VARCHAR = 'app.bsky.feed.post'
GROUP BY user_id
ORDER BY first_post
LIMIT 3;

SELECT
  data.did::VARCHAR AS user_id,
  date_diff('milliseconds', min(make_timestamp(data.time_us::BIGINT)), max(make_timestamp(data.time_us::BIGINT)))
    AS activity_span
FROM read_parquet(getvariable('files'))
WHERE data.kind::VARCHAR = 'commit' AND data.commit.operation::VARCHAR = 'create'
  AND data.commit.collection::VARCHAR = 'app.bsky.feed.post'
GROUP BY user_id
ORDER BY activity_span DESC
LIMIT 3;
