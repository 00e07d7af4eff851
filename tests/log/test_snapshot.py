"""Action reconciliation, and the content of a snapshot."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.errors import raises_at

from delta_variant.errors import MalformedLogError
from delta_variant.log import file_tables
from delta_variant.log import replay as log_replay
from delta_variant.protocol.actions import (
    AddFile,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)
from delta_variant.storage import store

PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("variantType",),
    writer_features=("variantType",),
)
METADATA = Metadata(
    id="m",
    format=Format(),
    schema_string='{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}',
    partition_columns=(),
    configuration={"delta.enableVariantShredding": "true"},
)
VECTOR = DeletionVector(storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=2, cardinality=3)


def add(path, vector=None, size=1):
    return AddFile(
        path=path,
        partition_values={"p": None},
        size=size,
        modification_time=1,
        data_change=True,
        deletion_vector=vector,
    )


def remove(path, vector=None):
    return RemoveFile(path=path, data_change=True, deletion_vector=vector)


def replay(*commits, checkpoint=None):
    root = store.open_store("/nowhere")
    return log_replay.replay(root, len(commits) - 1, checkpoint, [[PROTOCOL, METADATA], *commits])


def checkpoint(*adds, actions=()):
    return log_replay.Checkpoint(actions, file_tables.files_table(adds).to_batches())


def keys(state):
    vectors = state.files["deletion_vector"].to_pylist()
    return sorted(zip(state.files["path"].to_pylist(), [v is not None for v in vectors], strict=True))


@pytest.mark.parametrize("from_checkpoint", [False, True])
class TestLogicalFiles:
    """Each rule applies to files of commits and of checkpoints."""

    def state(self, from_checkpoint, first, *others):
        if from_checkpoint:
            return replay(*others, checkpoint=checkpoint(*first))
        return replay(list(first), *others)

    def test_a_removed_file_is_not_in_the_snapshot(self, from_checkpoint):
        assert keys(self.state(from_checkpoint, [add("a"), add("b")], [remove("a")])) == [("b", False)]

    def test_a_file_added_again_after_its_removal_is_in_the_snapshot(self, from_checkpoint):
        assert keys(self.state(from_checkpoint, [add("a")], [remove("a")], [add("a")])) == [("a", False)]

    def test_the_latest_add_of_a_file_wins(self, from_checkpoint):
        assert self.state(from_checkpoint, [add("a")], [add("a", size=9)]).files["size"].to_pylist() == [9]

    def test_a_deletion_vector_makes_another_logical_file(self, from_checkpoint):
        state = self.state(from_checkpoint, [add("a")], [remove("a"), add("a", VECTOR)])
        assert keys(state) == [("a", True)]
        assert keys(self.state(from_checkpoint, [add("a", VECTOR)], [remove("a")])) == [("a", True)]
        assert keys(self.state(from_checkpoint, [add("a", VECTOR)], [remove("a", VECTOR)])) == []

    def test_paths_are_compared_decoded(self, from_checkpoint):
        assert keys(self.state(from_checkpoint, [add("a%20b")], [remove("a b")])) == []

    @pytest.mark.parametrize("vector", [None, VECTOR])
    def test_spellings_of_a_local_path_are_one_file(self, from_checkpoint, vector):
        """delta-spark qualifies `/a` before it compares paths: its golden tables canonicalized-paths-*."""
        spellings = ["/a%20b", "file:/a%20b", "file:///a%20b", "FILE://localhost/a%20b"]
        for added in spellings:
            for removed in spellings:
                actions = [add(added, vector)], [remove(removed, vector)]
                assert keys(self.state(from_checkpoint, *actions)) == []
        state = self.state(from_checkpoint, [add("file:///a", vector)], [remove("file://b/a", vector)])
        assert keys(state) == [("file:///a", vector is not None)]


def test_the_last_txn_and_domain_win_and_a_removed_domain_is_omitted():
    state = replay(
        [Txn(app_id="a", version=1), DomainMetadata(domain="d", configuration="1", removed=False)],
        [Txn(app_id="a", version=2), DomainMetadata(domain="e", configuration="2", removed=False)],
        [DomainMetadata(domain="d", configuration="1", removed=True)],
    )
    assert {name: txn.version for name, txn in state.txns.items()} == {"a": 2}
    assert {name: domain.configuration for name, domain in state.domain_metadata.items()} == {"e": "2"}


@pytest.mark.parametrize(("actions", "lacking"), [([PROTOCOL], "metaData"), ([METADATA], "protocol")])
def test_a_log_without_protocol_or_metadata_is_malformed(actions, lacking):
    with raises_at(MalformedLogError, f"lacks {lacking}", version=0):
        log_replay.replay(store.open_store("/nowhere"), 0, None, [actions])


def test_files_are_columnar_with_decoded_paths_and_null_for_absent_fields():
    table = file_tables.files_table([add("test%25file", VECTOR)])
    assert table.schema == file_tables.FILES_SCHEMA
    row = table.to_pylist()[0]
    assert row["path"] == "test%file"
    assert row["partition_values"] == [("p", None)]
    assert (row["stats"], row["tags"], row["base_row_id"]) == (None, None, None)
    assert row["deletion_vector"]["path_or_inline_dv"] == "ab"
    assert row["deletion_vector"]["max_row_index"] is None


def test_a_snapshot_without_files_has_an_empty_table():
    assert file_tables.files_table([]) == pa.Table.from_pylist([], file_tables.FILES_SCHEMA)


def test_the_repr_of_a_snapshot_describes_the_table():
    assert repr(replay([add("a", size=1200), add("b")])).splitlines() == [
        "Snapshot of /nowhere",
        "  version     0",
        "  files       2 (1,201 bytes)",
        "  protocol    3, 7",
        "  features    variantType",
        "  property    delta.enableVariantShredding = true",
        "  column      v variant",
    ]


def test_the_actions_of_files_equal_those_of_the_log():
    full = AddFile(
        path="a%20b/%C3%BC.parquet",
        partition_values={"p": "x", "q": None},
        size=7,
        modification_time=8,
        data_change=True,
        stats='{"numRecords":1}',
        tags={"t": "u", "n": None},
        deletion_vector=VECTOR,
        base_row_id=9,
        default_row_commit_version=10,
        clustering_provider="c",
    )
    actions = [add("plain"), full, add("%61%2520")]
    assert list(file_tables.add_actions(file_tables.files_table(actions))) == actions


def test_subtract_files_compares_path_and_deletion_vector():
    files = file_tables.files_table([add("f"), add("f", VECTOR), add("g", size=2), add("h")])
    others = file_tables.files_table([add("f", VECTOR), add("h", size=3)])
    assert file_tables.subtract_files(files, others)["path"].to_pylist() == ["f", "g"]
    assert file_tables.subtract_files(files, file_tables.files_table([])).num_rows == 4
    assert file_tables.subtract_files(file_tables.files_table([]), files).num_rows == 0
