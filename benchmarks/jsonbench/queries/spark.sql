SELECT data:commit.collection::string AS event, count(*) AS count
FROM bluesky
GROUP BY event
ORDER BY count DESC, event;

SELECT data:commit.collection::string AS event, count(*) AS count, count(DISTINCT data:did::string) AS users
FROM bluesky
WHERE data:kind::string = 'commit' AND data:commit.operation::string = 'create'
GROUP BY event
ORDER BY count DESC, event;

SELECT
  data:commit.collection::string AS event,
  hour(timestamp_micros(data:time_us::bigint)) AS hour_of_day,
  count(*) AS count
FROM bluesky
WHERE data:kind::string = 'commit' AND data:commit.operation::string = 'create'
  AND data:commit.collection::string IN ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')
GROUP BY event, hour_of_day
ORDER BY hour_of_day, event;

SELECT data:did::string AS user_id, string(min(timestamp_micros(data:time_us::bigint))) AS first_post
FROM bluesky
WHERE data:kind::string = 'commit' AND data:commit.operation::string = 'create'
  AND data:commit.collection::string = 'app.bsky.feed.post'
GROUP BY user_id
ORDER BY first_post
LIMIT 3;

SELECT
  data:did::string AS user_id,
  unix_millis(max(timestamp_micros(data:time_us::bigint))) - unix_millis(min(timestamp_micros(data:time_us::bigint)))
    AS activity_span
FROM bluesky
WHERE data:kind::string = 'commit' AND data:commit.operation::string = 'create'
  AND data:commit.collection::string = 'app.bsky.feed.post'
GROUP BY user_id
ORDER BY activity_span DESC
LIMIT 3;
