"""The examples at the end of each `--help`."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EXAMPLES"]

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "write": (
        "delta-variant write events.ndjson lake/events --column event",
        "gh api /events | delta-variant write - lake/events --mode append",
        "delta-variant write 'in/*.parquet' s3://bucket/events \\",
        "    --variant-column payload --partition-by day \\",
        "    --storage-option AWS_REGION=eu-west-1",
    ),
    "read": (
        "delta-variant read lake/events --limit 5",
        "delta-variant read lake/events -c user=event:user.id::bigint \\",
        "    --where \"event:action::string = 'buy'\" --json | jq .user",
        "delta-variant read lake/events --version 3 --format csv > events.csv",
    ),
    "describe": (
        "delta-variant describe lake/events",
        "delta-variant describe lake/events --json | jq .properties",
    ),
    "convert": (
        "delta-variant convert exports/ lake/events --column payload",
        "delta-variant convert lake/unshredded lake/shredded",
    ),
    "delete": (
        'delta-variant delete lake/events --where "event:id::bigint = 7" --dry-run',
        "delta-variant delete lake/events --where \"day < '2026-01-01'\" --yes",
    ),
    "update": (
        "delta-variant update lake/events --set \"event:user.email='x'\" \\",
        '    --where "event:user.id::bigint = 7"',
        "delta-variant update lake/events --unset event:ip --all --yes",
    ),
    "merge": (
        "delta-variant merge changes.ndjson lake/users --column change \\",
        '    --on "target.id = source.change:id::bigint" \\',
        "    --when-matched-delete --where \"source.change:op::string = 'delete'\" \\",
        '    --when-matched-update --set "name = source.change:name::string" \\',
        '    --when-not-matched-insert --set "id = source.change:id::bigint" \\',
        '        --set "name = source.change:name::string"',
    ),
    "history": (
        "delta-variant history lake/events --limit 10",
        "delta-variant history lake/events --json | jq .operationMetrics",
    ),
    "changes": (
        "delta-variant changes lake/events --start 3",
        "delta-variant changes lake/events --start 2026-11-21 --json",
    ),
    "restore": (
        "delta-variant restore lake/events --version 3 --dry-run",
        "delta-variant restore lake/events --timestamp 2026-11-21T09:30Z --yes",
    ),
    "optimize": (
        "delta-variant optimize lake/events --dry-run",
        "delta-variant optimize lake/events --sort-by event:user.id::bigint",
    ),
    "vacuum": (
        "delta-variant vacuum lake/events --dry-run",
        "delta-variant vacuum lake/events --retention-hours 240 --yes",
    ),
    "clean_up_log": (
        "delta-variant clean-up-log lake/events --dry-run",
        "delta-variant clean-up-log lake/events --yes",
    ),
    "alter": (
        "delta-variant alter lake/events --set delta.enableChangeDataFeed=true",
        "delta-variant alter lake/events --add-column raw=variant",
    ),
    "audit": (
        "delta-variant audit lake/events",
        "delta-variant audit lake/events --data --html audit.html",
    ),
    "repair_statistics": (
        "delta-variant repair-statistics lake/events --dry-run",
        "delta-variant repair-statistics lake/events",
    ),
    "inspect": (
        "delta-variant inspect lake/events",
        "delta-variant inspect lake/events/part-00000.parquet --json",
        "delta-variant inspect lake/events --html events.html",
    ),
    "stats": (
        "delta-variant stats lake/events",
        "delta-variant stats lake/events --exact --json",
    ),
    "decode": ("delta-variant z85 decode '5DI>pbWhTgwg7T:0rr933<M+j'",),
    "encode": ("delta-variant z85 encode '{\"$\": 7}'",),
    "migrate": ("delta-variant migrate old.parquet new.parquet",),
    "conformance": (
        "delta-variant conformance --engine ours",
        "delta-variant conformance --cases parquet-testing --html kit.html",
    ),
}
