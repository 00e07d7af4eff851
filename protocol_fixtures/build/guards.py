"""The published bugs, in which engines lost or altered values, and the cases that guard them."""

from __future__ import annotations

from fnmatch import fnmatchcase

# Issues and pull requests on GitHub and commits of this library, with cases, in which `*` matches any text.
GUARDS = {
    "ClickHouse#95948": "shred/name_that_begins_like_a_shredded_one",
    "ClickHouse#114873": "select/name_like_an_operator_*",
    "ClickHouse#117938": "select/path_below_the_paths_with_bounds",
    "ClickHouse#119321": "select/path_below_the_paths_with_bounds",
    "ClickHouse#119592": "select/name_with_a_dot* select/path_that_a_name_with_a_dot_resembles",
    "ClickHouse#119767": "select/missing_path_*",
    "comet#4084": "select/path_in_part_of_an_object_* select/path_within_typed_objects",
    "delta#6668": "select/bound_on_the_*_side_only select/bounds_of_different_paths table/stats_of_one_side",
    "delta#7692": "rewrite/compact_property_*",
    "delta-kernel-rs#3354": "table/shredding_feature_without_type_feature",
    "delta_variant@27803ab": "select/last_timestamp select/timestamp_above_its_bound",
    "delta_variant@e390afb": "table/compaction_newest_first table/compaction",
    "duckdb#21200": "select/path_of_sporadic_objects unshred/missing_null_and_set_fields",
    "duckdb#21814": (
        "unshred/decimal_of_4_digits_in_int32 unshred/nothing_at_the_root unshred/nothing_in_an_array"
    ),
    "duckdb#23303": "select/field_of_scalars select/field_of_texts",
    "duckdb#24293": "shred/a_field_twice* encode/object_with_a_name_twice*",
    "duckdb#24297": "shred/names_that_differ_in_case",
    "duckdb#24379": "shred/name_that_differs_in_case_from_the_shredded_one",
    "duckdb#25872": "select/field_of_booleans select/field_of_arrays",
    "hudi#19556": "rewrite/compact_shredded_* rewrite/compact_objects_in_part rewrite/compact_files_*",
    "hudi#19567": "rewrite/delete_from_*",
    "iceberg#15086": "shred/rest_of_an_object_in_part",
    "iceberg#16880": "select/binary_*",
    "iceberg#17397": "select/text_beyond_the_basic_plane_* stats/text_beyond_the_basic_plane",
    "paimon#6936": "select/shredded_and_unshredded_files* table/mixed_files",
    "parquet-format#562": "file/annotated file/annotated_without_a_version file/annotated_version_2",
    "parquet-format#565": "unshred/fields_sorted_by_utf8",
    "parquet-format#574": (
        "decode/metadata_reserved_bit decode/object_reserved_bit decode/array_reserved_bits "
        "decode/metadata_marked_unique_and_not decode/metadata_marked_sorted_and_not "
        "unshred/reserved_bits_in_value select/names_not_sorted*"
    ),
    "spark#54598": "select/value_of_another_type_*",
    "spark#58239": "select/names_in_utf8_order*",
    "trino#25666": "table/compacted_by_spark",
}


def guards_of(case: str) -> list[str]:
    """Return the bugs that a case guards, by its `kind/name`."""
    return [
        bug for bug, cases in GUARDS.items() if any(fnmatchcase(case, pattern) for pattern in cases.split())
    ]
