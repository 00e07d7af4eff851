"""The tiers of the tests (README.md), the rules that assign them, their budgets, and the order of files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent

# Strongest first: a test that two rules assign belongs to the first of their tiers.
TIERS = ("nightly", "long", "faults", "interop", "slow", "unit")


class Budget(NamedTuple):
    """The seconds that a tier may take, as the sum over its tests, and the most that one test may take."""

    tier: float
    test: float


# On two quiet cores. A busy machine exceeds them, so a run prints what exceeds them, and does not fail.
BUDGETS = {
    "unit": Budget(400, 10),
    "slow": Budget(420, 15),
    "interop": Budget(320, 25),
    "faults": Budget(300, 20),
    "long": Budget(1650, 40),
}

# The files that take longest run first, so that no process waits for one of them at the end.
LONGEST = (
    "interop/test_spark_timeline.py",
    "spark/test_driver_crashes.py",
    "spark/test_session_timezones.py",
    "faults/test_interleavings.py",
    "spark/test_streams.py",
    "spark/test_merging_by_tasks.py",
    "interop/test_spark_row_tracking.py",
    "interop/test_spark_feed.py",
    "interop/test_spark_writes.py",
    "interop/test_spark_reads.py",
    "read/test_skipping.py",
)

# The tiers of the tests in a folder or a file, and of tests that request a fixture, also through other ones.
FOLDERS = {
    "faults": "faults",
    "foreign": "interop",
    "integrations": "nightly",
    "interop": "interop",
    "spark": "long",
}
FILES = {
    "cli/test_cli_terminal.py": "long",
    "conformance/test_adapters.py": "interop",
    "conformance/test_archive.py": "long",
    "conformance/test_systematic_cases.py": "long",
    "faults/test_concurrent_writers.py": "long",
    "faults/test_unity_catalog.py": "long",
    "interop/test_conformance_java.py": "nightly",
    "interop/test_conformance_spark.py": "long",
    "interop/test_kernel_unity_catalog.py": "nightly",
    "interop/test_parse_json_differential.py": "long",
    "interop/test_spark_alters.py": "long",
    "interop/test_spark_changes.py": "long",
    "interop/test_spark_checkpoints.py": "long",
    "interop/test_spark_checksums.py": "long",
    "interop/test_spark_drops_features.py": "long",
    "interop/test_spark_feed.py": "long",
    "interop/test_spark_foreign.py": "long",
    "interop/test_spark_pipeline.py": "long",
    "interop/test_spark_reads.py": "long",
    "interop/test_spark_repairs.py": "long",
    "interop/test_spark_rewrites.py": "long",
    "interop/test_spark_row_tracking.py": "long",
    "interop/test_spark_statistics.py": "long",
    "interop/test_spark_timeline.py": "long",
    "interop/test_spark_vectors.py": "long",
    "interop/test_spark_writes.py": "long",
    "interop/test_view_writers.py": "long",
    "spark/test_core.py": "interop",
    "spark/test_executors.py": "interop",
    "spark/test_locations.py": "interop",
    "spark/test_spark_api.py": "interop",
    "spark/test_spark_columns.py": "interop",
    "spark/test_statement_rewriting.py": "interop",
    "spark/test_statements.py": "interop",
}

# How many cases of a test run in each change, spread over all of them. The others run at night: each takes
# seconds, and most find what these find.
CASES_BY_DAY = {
    "cli/test_cli_interrupts.py": {
        "test_input_without_values_is_an_error_unless_allowed": 3,
    },
    "cli/test_cli_terminal.py": {
        "test_data_cannot_control_a_terminal": 3,
        "test_head_ends_a_read_quietly": 1,
        "test_output_that_is_closed_early_ends_a_command_quietly": 3,
    },
    "conformance/test_conformance_causes.py": {
        "test_a_mistake_is_one_cause_that_names_what_is_wrong_and_the_rule": 5,
    },
    "conformance/test_conformance_engines.py": {
        "test_an_engine_that_is_not_installed_says_what_is_missing": 5,
    },
    "data_file/test_large_values.py": {
        "test_a_blank_value_written_by_pyarrow_is_read": 11,
    },
    "data_file/test_small_files.py": {
        "test_default_shredding_keeps_files_of_a_corpus_small": 4,
    },
    "faults/test_interleavings.py": {
        "test_a_store_that_breaks_its_promise_fails_a_check_and_the_seed_repeats_it": 1,
    },
    "faults/test_uncertain_requests.py": {
        "test_a_commit_that_is_stored_before_an_error_is_found": 8,
        "test_a_request_that_only_reads_fails_without_an_effect": 10,
    },
    "foreign/test_foreign_tables.py": {
        "test_a_predicate_finds_the_same_rows_as_a_full_scan": 50,
    },
    "interop/test_conformance_spark.py": {
        "test_spark_selects_and_rewrites": 2,
    },
    "interop/test_notebooks.py": {
        "test_a_notebook_shows_what_is_committed": 1,
    },
    "interop/test_spark_alters.py": {
        "test_spark_and_we_read_the_same_columns_that_we_widened": 1,
    },
    "interop/test_spark_changes.py": {
        "test_spark_reads_exactly_the_changes_of_each_operation": 2,
    },
    "interop/test_spark_checkpoints.py": {
        "test_spark_reads_our_checkpoint_appends_and_keeps_our_statistics": 2,
        "test_spark_reads_our_sidecars_checkpoints_on_top_and_cleans_up": 1,
        "test_we_read_the_checkpoint_of_spark_with_its_statistics": 2,
    },
    "interop/test_spark_drops_features.py": {
        "test_history_is_truncated_as_by_delta": 1,
        "test_the_protocol_is_that_of_delta_without_the_feature": 1,
    },
    "interop/test_spark_feed.py": {
        "test_both_read_the_same_changes": 1,
    },
    "interop/test_spark_pipeline.py": {
        "test_changes_of_our_table_by_spark_sql_are_read_and_appended_to": 2,
    },
    "interop/test_spark_reads.py": {
        "test_spark_reads_and_appends_to_a_partitioned_table_of_ours": 3,
        "test_spark_reads_back_its_own_values_of_every_type_from_our_table": 3,
        "test_spark_reads_every_value_as_its_parse_json_returns_it": 1,
        "test_we_read_our_table_after_spark_changed_it": 2,
    },
    "interop/test_spark_repairs.py": {
        "test_spark_reads_the_same_rows_of_a_repaired_table": 3,
    },
    "interop/test_spark_rewrites.py": {
        "test_spark_reads_a_table_after_each_operation": 1,
    },
    "interop/test_spark_row_tracking.py": {
        "test_rows_keep_the_ids_that_spark_reads": 1,
    },
    "interop/test_spark_statistics.py": {
        "test_our_bounds_contain_every_value_that_spark_reads": 1,
    },
    "interop/test_spark_timeline.py": {
        "test_a_timestamp_selects_the_same_version": 1,
        "test_both_restore_a_table": 1,
        "test_both_vacuum_the_same_files": 1,
    },
    "interop/test_spark_writes.py": {
        "test_we_read_every_value_of_a_shredded_table": 1,
        "test_we_read_every_value_of_a_table_of_the_corpora_with_its_type_and_as_text": 8,
    },
    "operations/test_log_cleanup.py": {
        "test_others_use_the_table_at_any_step_of_a_cleanup": 1,
    },
    "protocol/test_type_widening.py": {
        "test_files_of_other_writers_are_read_and_changed_in_the_wide_type": 20,
        "test_skipping_by_statistics_of_the_old_type_loses_no_row": 17,
    },
    "read/test_aggregate.py": {
        "test_aggregates_are_those_of_the_rows": 6,
    },
    "read/test_pushdown.py": {
        "test_engines_return_the_rows_of_the_oracle": 4,
    },
    "read/test_row_conditions.py": {
        "test_rows_are_those_for_which_the_predicate_is_true": 40,
    },
    "read/test_skipping.py": {
        "test_no_row_is_lost_by_the_statistics_of_other_writers": 6,
    },
    "reports/test_audit_page.py": {
        "test_a_page_renders_without_warnings_and_fits": 10,
    },
    "spark/test_auto_compaction.py": {
        "test_partitions_that_a_change_of_rows_adds_files_to_are_compacted_as_by_delta": 1,
    },
    "spark/test_big_rows.py": {
        "test_a_frame_without_rows_makes_the_commits_that_delta_makes_and_no_file": 2,
        "test_a_merge_of_no_rows_changes_what_no_row_matches": 1,
        "test_a_task_that_fails_at_its_first_attempt_writes_each_row_once": 1,
        "test_values_of_ten_megabytes_are_written_changed_and_read": 1,
    },
    "spark/test_change_streams.py": {
        "test_each_kind_of_commit_is_read_as_delta_reads_it": 4,
        "test_each_option_has_the_meaning_that_it_has_in_delta": 2,
        "test_limits_make_the_micro_batches_of_delta": 2,
    },
    "spark/test_changes_by_tasks.py": {
        "test_changes_are_those_of_delta": 1,
        "test_changes_are_those_of_one_process": 2,
    },
    "spark/test_data_source.py": {
        "test_invalid_options_are_rejected_and_nothing_is_written": 2,
    },
    "spark/test_delta_options.py": {
        "test_a_write_has_the_outcome_of_delta": 4,
        "test_an_option_of_delta_is_accepted_in_any_case": 33,
    },
    "spark/test_executors.py": {
        "test_many_tasks_do_the_same_as_one": 3,
    },
    "spark/test_file_metadata_on_spark.py": {
        "test_queries_have_the_files_of_sparks_own_scan": 3,
    },
    "spark/test_locations.py": {
        "test_the_format_raises_before_a_job": 2,
    },
    "spark/test_merging_by_tasks.py": {
        "test_merges_are_those_of_one_process": 9,
        "test_tasks_that_fail_once_leave_each_row_once": 1,
    },
    "spark/test_monitoring.py": {
        "test_each_job_names_its_operation_its_table_and_its_step": 3,
    },
    "spark/test_names.py": {
        "test_a_name_of_no_delta_table_is_an_error_with_the_way_to_write_a_path": 3,
    },
    "spark/test_queries.py": {
        "test_a_query_has_the_rows_and_the_error_of_spark": 9,
        "test_random_queries_have_the_results_of_spark": 1,
    },
    "spark/test_rewritten_small_files.py": {
        "test_small_files_share_new_ones_and_all_else_is_that_of_delta": 1,
    },
    "spark/test_session_timezones.py": {
        "test_all_readers_find_the_rows_that_spark_finds": 1,
    },
    "spark/test_sql_on_spark.py": {
        "test_random_queries_return_what_spark_returns": 1,
    },
    "spark/test_sql_statements_on_spark.py": {
        "test_an_insert_casts_nested_values_by_position": 2,
        "test_random_statements_change_what_they_change_in_delta": 1,
    },
    "spark/test_task_errors.py": {
        "test_every_action_raises_the_error_of_its_task": 2,
    },
    "spark/test_writing_by_tasks.py": {
        "test_the_tasks_of_a_write_compute_each_row_once": 4,
    },
    "test_direct_rows.py": {
        "test_random_queries_have_the_same_rows": 2,
    },
    "write/test_corpora.py": {
        "test_every_value_of_a_shredded_table_is_its_line": 4,
        "test_separating_residual_rows_changes_no_value": 4,
    },
    "write/test_failed_writes.py": {
        "test_a_failed_write_releases_its_source": 12,
    },
    "write/test_transferred_rows.py": {
        "test_random_files_have_the_same_outcome_whether_their_rows_are_transferred_or_read": 1,
    },
}
FIXTURES = {"corpora": "interop", "browser": "interop"}

# The marker expression where the command line has none: alone, and where it names files or folders.
DEFAULT = "unit"
DEFAULT_OF_PATHS = "not nightly"


def mark_cases_at_night(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of tests that CASES_BY_DAY does not leave to each change."""
    cases = defaultdict[tuple[str, str], list[pytest.Item]](list)
    for item in items:
        cases[item.path.relative_to(HERE).as_posix(), getattr(item, "originalname", item.name)].append(item)
    for (file, test), found in cases.items():
        by_day = CASES_BY_DAY.get(file, {}).get(test, len(found))
        for number, item in enumerate(found):
            if number and number * by_day // len(found) == (number - 1) * by_day // len(found):
                item.add_marker("nightly")


def rank_of(item: pytest.Item) -> int:
    """Return the rank of the file of a test: the longest files first, all others after them."""
    file = item.path.relative_to(HERE).as_posix()
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: that of its marker, its fixtures, its file or its folder, or else `unit`.

    A property test is slow, because it draws many examples.
    """
    assigned = {name for name in TIERS if item.get_closest_marker(name)}
    file = item.path.relative_to(HERE)
    assigned.add(FILES.get(file.as_posix()) or FOLDERS.get(file.parts[0], "unit"))
    assigned.update(FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES)
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        assigned.add("slow")
    return next(name for name in TIERS if name in assigned)


def lines_of_budgets(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield a line for each tier, and one for each test that exceeds its budget."""
    seconds: dict[str, dict[str, float]] = {tier: defaultdict(float) for tier in BUDGETS}
    for report in reports:
        tier = dict(report.user_properties).get("tier")
        if tier in seconds:
            seconds[tier][report.nodeid] += report.duration
    for tier, tests in seconds.items():
        budget, total = BUDGETS[tier], sum(tests.values())
        if tests:
            exceeded = ", exceeded" if total > budget.tier else ""
            yield f"{tier}: {len(tests):,} tests in {total:,.0f} s of {budget.tier:,.0f} s{exceeded}"
        for test, spent in sorted(tests.items(), key=lambda item: -item[1]):
            if spent > budget.test:
                yield f"  {spent:.0f} s of {budget.test:.0f} s: {test}"
