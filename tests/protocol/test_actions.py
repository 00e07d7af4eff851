"""Actions: decoding and encoding of commits, and the paths in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_at

from delta_variant.errors import MalformedLogError
from delta_variant.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Protocol,
    RemoveFile,
    Txn,
    decode_commit,
    decode_path,
    encode_commit,
    encode_path,
    file_key,
    is_absolute,
)

ADD = '{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true%s}}\n'
PROTOCOL = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'


def decode(text):
    return decode_commit(text.encode(), "7.json")


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


def test_every_commit_of_the_golden_tables_survives_decoding_and_encoding(corpora):
    commits = sorted(corpora.glob("delta-golden/*/_delta_log/*.json"))
    assert len(commits) == 7
    for commit in commits:
        data = commit.read_bytes()
        again = encode_commit(decode_commit(data, commit.name))
        assert [json.loads(line) for line in again.splitlines()] == [
            without_nulls(json.loads(line)) if not line.startswith(b'{"commitInfo"') else json.loads(line)
            for line in data.splitlines()
        ]


def test_null_and_absent_fields_are_the_same_and_neither_is_written():
    assert decode(ADD % ',"stats":null,"tags":null') == decode(ADD % "")
    assert encode_commit(decode(ADD % ',"stats":null')).decode() == ADD % ""


def test_unknown_fields_and_unknown_actions_are_ignored():
    assert decode(ADD % ',"future":{"x":[1]}') == decode(ADD % "")
    assert decode('{"future":{"x":1}}\n\n') == []


def test_commit_info_keeps_every_field():
    fields = {"timestamp": 1, "operation": "X", "inCommitTimestamp": 2, "custom": {"a": [None, 1.5]}}
    (info,) = decode(json.dumps({"commitInfo": fields}))
    assert info == CommitInfo(fields)
    assert (info.operation, info.in_commit_timestamp) == ("X", 2)
    assert json.loads(encode_commit([info])) == {"commitInfo": fields}


def test_stats_text_is_verbatim():
    stats = r'{"numRecords": 1,  "minValues":{"v":"0rAf\\u0041"}}'
    (add,) = decode(ADD % f',"stats":{json.dumps(stats)}')
    assert add.stats == stats
    assert json.loads(encode_commit([add]))["add"]["stats"] == stats


def test_falsy_values_that_are_required_are_written():
    action = DomainMetadata(domain="d", configuration="", removed=False)
    assert (
        encode_commit([action]) == b'{"domainMetadata":{"domain":"d","configuration":"","removed":false}}\n'
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "truncated"),
        ('{"add":{}}', "missing required field `path`"),
        ("[]", "Expected `object`"),
        ('{"txn":{"appId":"a","version":"1"}}', "Expected `int`"),
        ('{"txn":{"appId":"a","version":9223372036854775808}}', "9223372036854775807"),
        ('{"txn":{"appId":"\\ud800","version":1}}', "surrogate"),
        ('{"commitInfo":{"a":' + "[" * 100_000, "recursion"),
    ],
)
def test_an_invalid_line_is_reported_with_file_and_line(line, message):
    with pytest.raises(MalformedLogError, match=message) as caught:
        decode(PROTOCOL + line + "\n")
    assert (caught.value.file, caught.value.line) == ("7.json", 2)


def test_bytes_that_are_not_utf8_are_named_by_file_and_line():
    with raises_at(MalformedLogError, file="7.json", line=2):
        decode_commit(PROTOCOL.encode() + b'{"txn":{"appId":"\xff","version":1}}', "7.json")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PROTOCOL * 2, "protocol"),
        (ADD % "" + ADD % "", "add of a"),
        (ADD % "" + (ADD % "").replace('"a"', '"%61"'), "add of a"),
        ('{"txn":{"appId":"x","version":1}}\n' * 2, "txn of x"),
        ('{"domainMetadata":{"domain":"d","configuration":"","removed":true}}\n' * 2, "domainMetadata of d"),
        ('{"commitInfo":{}}\n' * 2, "commitInfo"),
    ],
)
def test_a_duplicate_of_a_unique_action_is_rejected(text, name):
    with raises_at(MalformedLogError, f"only one {name}", file="7.json", line=2):
        decode(text)


def test_one_path_may_be_removed_and_added_and_added_with_two_deletion_vectors():
    vector = DeletionVector(
        storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=2, cardinality=3
    )
    add = AddFile(path="a", partition_values={}, size=1, modification_time=1, data_change=True)
    with_vector = AddFile(
        path="a", partition_values={}, size=1, modification_time=1, data_change=True, deletion_vector=vector
    )
    remove = RemoveFile(path="a", data_change=True)
    actions = [remove, add, with_vector, Txn(app_id="x", version=1), Txn(app_id="y", version=1)]
    assert decode_commit(encode_commit(actions), "x") == actions
    assert file_key(with_vector) == ("a", "uab@1")


def test_two_actions_on_one_line_are_rejected():
    with pytest.raises(MalformedLogError, match="expected one action per line"):
        decode('{"txn":{"appId":"a","version":1},"protocol":{"minReaderVersion":1,"minWriterVersion":2}}')


def test_features_that_are_absent_differ_from_features_that_are_empty():
    bare = Protocol(min_reader_version=1, min_writer_version=2)
    empty = Protocol(min_reader_version=3, min_writer_version=7, reader_features=(), writer_features=())
    assert decode_commit(encode_commit([bare]), "x") == [bare]
    assert decode_commit(encode_commit([empty]), "x") == [empty]


@pytest.mark.parametrize(
    ("path", "encoded"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("test%file%prefix-part-0.parquet", "test%25file%25prefix-part-0.parquet"),
        ("day=a b/x#1?.parquet", "day=a%20b/x%231%3F.parquet"),
        ("day=a%20b/x", "day=a%2520b/x"),
        ("é/🎈", "%C3%A9/%F0%9F%8E%88"),
        ("a:b/c:d", "a%3Ab/c:d"),
        ("s3://bucket/a b", "s3://bucket/a%20b"),
        # As a shallow clone of Delta on Spark has it, which finds the files of an absolute path by its text.
        (
            "file:/a%ü'é[1]{a}#?^\u00a0東\u2028🎈\\/b:c",
            "file:/a%25ü'é%5B1%5D%7Ba%7D%23%3F%5E%C2%A0東%E2%80%A8🎈%5C/b:c",
        ),
    ],
)
def test_paths_are_percent_encoded_once(path, encoded):
    assert encode_path(path) == encoded
    assert decode_path(encoded) == path


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_decode_path_undoes_encode_path(path):
    assert encode_path(path).isascii() or is_absolute(path)
    assert decode_path(encode_path(path)) == path


@pytest.mark.parametrize("path", ["a\0b", "a%00b"])
def test_a_path_with_a_nul_character_is_malformed(path):
    with pytest.raises(MalformedLogError, match="contains a NUL character"):
        decode_path(path)


def test_a_path_that_is_not_utf8_is_rejected():
    with pytest.raises(MalformedLogError, match="'%FF': it is not UTF-8"):
        decode_path("%FF")


@pytest.mark.parametrize(
    ("path", "expected"), [("a/b", False), ("/a", True), ("s3://a/b", True), ("file:/a", True)]
)
def test_absolute_paths_stand_for_themselves(path, expected):
    assert is_absolute(path) is expected
