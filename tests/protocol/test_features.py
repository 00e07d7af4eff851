"""Table features: which tables this library reads and writes (PROTOCOL.md, "Table Features")."""

from __future__ import annotations

import re
import tarfile

import pytest
from support.errors import raises_at

from delta_variant.errors import ProtocolError, UnsupportedFeatureError
from delta_variant.protocol import features
from delta_variant.protocol.actions import Format, Metadata, Protocol, decode_commit
from delta_variant.protocol.schema.json_text import parse, to_json
from delta_variant.protocol.table_configuration import TableConfiguration
from delta_variant.protocol.types import VARIANT, ArrayType, MapType, PrimitiveType, StructField, StructType

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
PLAIN = StructType((StructField("id", LONG),))
WITH_VARIANT = StructType((StructField("id", LONG), StructField("v", VARIANT)))
WITH_NTZ = StructType((StructField("t", PrimitiveType("timestamp_ntz")),))
SHREDDED = {"delta.enableVariantShredding": "true"}


def listed(*both, writer=()):
    return Protocol(
        min_reader_version=3, min_writer_version=7, reader_features=both, writer_features=(*both, *writer)
    )


def legacy(reader, writer):
    return Protocol(min_reader_version=reader, min_writer_version=writer)


GA = listed("variantType", "variantShredding")


def events(protocol, schema, configuration=None):
    metadata = Metadata(
        id="id",
        format=Format(),
        schema_string=to_json(schema),
        partition_columns=(),
        configuration=configuration or {},
    )
    return TableConfiguration("events", protocol, metadata, schema)


@pytest.mark.parametrize(
    ("protocol", "names"),
    [
        (legacy(1, 1), set()),
        (legacy(1, 2), {"appendOnly", "invariants"}),
        (legacy(1, 3), {"appendOnly", "invariants", "checkConstraints"}),
        (
            legacy(1, 4),
            {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"},
        ),
        (
            legacy(2, 5),
            {
                "appendOnly",
                "invariants",
                "checkConstraints",
                "changeDataFeed",
                "generatedColumns",
                "columnMapping",
            },
        ),
        (
            legacy(1, 6),
            {
                "appendOnly",
                "invariants",
                "checkConstraints",
                "changeDataFeed",
                "generatedColumns",
                "identityColumns",
            },
        ),
        (listed("variantType", writer=("appendOnly",)), {"variantType", "appendOnly"}),
        (
            Protocol(min_reader_version=1, min_writer_version=7, writer_features=("rowTracking",)),
            {"rowTracking"},
        ),
    ],
)
def test_supported_adds_what_legacy_versions_imply(protocol, names):
    assert features.supported_features(protocol) == names


@pytest.mark.parametrize(
    ("protocol", "answer"),
    [
        (GA, True),
        (listed("variantType", "variantShredding-preview"), True),
        (listed("variantType", "variantShredding", "variantShredding-preview"), True),
        (listed("variantType"), False),
        (listed("variantType", writer=("variantShredding",)), False),
        (legacy(2, 6), False),
    ],
)
def test_shredding_is_supported_when_either_name_is_in_both_lists(protocol, answer):
    """PROTOCOL.md, "Variant Shredding": the feature is in both lists."""
    assert features.supports_shredding(protocol) is answer


@pytest.mark.parametrize(
    ("protocol", "configuration", "answer"),
    [
        (GA, SHREDDED, True),
        (GA, {"delta.enableVariantShredding": "TRUE"}, True),
        (GA, {"delta.enableVariantShredding": "false"}, False),
        (GA, {}, False),
        (listed("variantType"), SHREDDED, False),
    ],
)
def test_shredding_is_enabled_when_supported_and_the_property_is_true(protocol, configuration, answer):
    """PROTOCOL.md, "Variant Shredding": the property enables a supported feature."""
    assert events(protocol, PLAIN, configuration).enables_shredding is answer


@pytest.mark.parametrize(
    ("protocol", "configuration", "answer"),
    [
        (listed(writer=("inCommitTimestamp",)), {"delta.enableInCommitTimestamps": "true"}, True),
        (listed(writer=("inCommitTimestamp-preview",)), {"delta.enableInCommitTimestamps": "true"}, True),
        (listed(writer=("inCommitTimestamp",)), {"delta.enableInCommitTimestamps": "false"}, False),
        (listed(writer=("inCommitTimestamp",)), {}, False),
        (legacy(1, 2), {"delta.enableInCommitTimestamps": "true"}, False),
    ],
)
def test_a_feature_is_enabled_when_supported_and_its_property_is_set(protocol, configuration, answer):
    """PROTOCOL.md, "In-Commit Timestamps": a table supports the feature, and enables it by the property."""
    assert events(protocol, PLAIN, configuration).enables("inCommitTimestamp") is answer


@pytest.mark.parametrize(
    ("protocol", "configuration", "answer"),
    [
        (listed(writer=("rowTracking", "domainMetadata")), {}, True),
        (listed(writer=("rowTracking", "domainMetadata")), {"delta.rowTrackingSuspended": "true"}, False),
        (legacy(1, 2), {}, False),
    ],
)
def test_row_ids_are_assigned_when_row_tracking_is_supported_and_not_suspended(
    protocol, configuration, answer
):
    """PROTOCOL.md, "Row Tracking": a writer assigns ids as soon as the feature is supported."""
    assert events(protocol, PLAIN, configuration).assigns_row_ids is answer


@pytest.mark.parametrize(
    "protocol",
    [
        GA,
        listed("variantType-preview", "variantShredding-preview"),
        listed("variantType", "variantType-preview", "variantShredding", "variantShredding-preview"),
        listed("variantType", "deletionVectors", "columnMapping", "typeWidening", "vacuumProtocolCheck"),
        listed(
            "variantType", writer=("someWriterFeature", "icebergCompatV3", "rowTracking", "domainMetadata")
        ),
    ],
)
def test_tables_of_known_reader_features_can_be_read(protocol):
    """A reader ignores writer features that it does not know."""
    events(protocol, WITH_VARIANT).check_may_read()


def test_every_table_that_delta_spark_wrote_can_be_read_and_appended_to(corpora):
    tables = sorted((corpora / "delta-spark").glob("*.tar.gz"))
    assert len(tables) >= 19
    for table in tables:
        protocol, metadata = first_actions(table)
        events(protocol, parse(metadata.schema_string), metadata.configuration).check_may_append()


def first_actions(table):
    with tarfile.open(table) as archive:
        (name,) = (
            name for name in archive.getnames() if name.endswith("/_delta_log/00000000000000000000.json")
        )
        actions = decode_commit(archive.extractfile(name).read(), name)
    (protocol,) = (action for action in actions if isinstance(action, Protocol))
    (metadata,) = (action for action in actions if isinstance(action, Metadata))
    return protocol, metadata


def test_legacy_tables_can_be_read_and_appended_to():
    for protocol in (legacy(1, 1), legacy(1, 2), legacy(2, 5), legacy(1, 6)):
        events(protocol, PLAIN).check_may_append()


@pytest.mark.parametrize("name", ["catalogOwned-preview", "someReaderFeature"])
def test_an_unknown_reader_feature_prevents_reads_and_is_named(name):
    with pytest.raises(UnsupportedFeatureError, match=f"cannot read .* {name}") as caught:
        events(listed("variantType", name), WITH_VARIANT).check_may_read()
    assert caught.value.table == "events"


@pytest.mark.parametrize("name", ["icebergCompatV3", "icebergWriterCompatV1", "someWriterFeature"])
def test_an_unknown_writer_feature_prevents_appends_and_is_named(name):
    with pytest.raises(UnsupportedFeatureError, match=f"cannot write .* {name}") as caught:
        events(listed("variantType", writer=(name,)), WITH_VARIANT).check_may_append()
    assert caught.value.table == "events"


def test_all_unknown_features_are_named_at_once():
    with pytest.raises(UnsupportedFeatureError, match=r"cannot write .* featureA, featureB") as caught:
        events(listed(writer=("featureB", "featureA")), PLAIN).check_may_append()
    assert caught.value.table == "events"


@pytest.mark.parametrize(("reader", "writer"), [(4, 7), (99, 99)])
def test_a_newer_reader_version_prevents_reads(reader, writer):
    with pytest.raises(UnsupportedFeatureError, match=f"reader version {reader}") as caught:
        events(legacy(reader, writer), PLAIN).check_may_read()
    assert caught.value.table == "events"


def test_a_newer_writer_version_prevents_only_appends():
    protocol = Protocol(min_reader_version=1, min_writer_version=8, writer_features=())
    events(protocol, PLAIN).check_may_read()
    with raises_at(UnsupportedFeatureError, "writer version 8", table="events"):
        events(protocol, PLAIN).check_may_append()


@pytest.mark.parametrize(
    "data_type",
    [
        VARIANT,
        ArrayType(VARIANT),
        MapType(STRING, VARIANT),
        StructType((StructField("w", ArrayType(StructType((StructField("x", VARIANT),)))),)),
    ],
)
@pytest.mark.parametrize("protocol", [legacy(1, 2), listed("deletionVectors")])
def test_a_variant_at_any_depth_without_the_feature_is_rejected(data_type, protocol):
    """PROTOCOL.md, "Variant Data Type"."""
    schema = StructType((StructField("c", data_type),))
    with pytest.raises(
        ProtocolError, match="type variant, but its protocol lacks the feature variantType"
    ) as caught:
        events(protocol, schema).check_may_read()
    assert caught.value.table == "events"


def test_a_timestamp_ntz_without_the_feature_is_read_but_not_appended_to():
    events(legacy(1, 2), WITH_NTZ).check_may_read()
    with raises_at(ProtocolError, "lacks the feature timestampNtz", table="events"):
        events(legacy(1, 2), WITH_NTZ).check_may_append()


def test_a_feature_in_only_one_list_is_rejected():
    """PROTOCOL.md, "Table Features"."""
    only_writer = listed("variantType", writer=("variantShredding",))
    with pytest.raises(
        ProtocolError, match="variantShredding in writerFeatures but not in readerFeatures"
    ) as caught:
        events(only_writer, WITH_VARIANT).check_may_read()
    assert caught.value.table == "events"
    only_reader = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=("variantType", "variantShredding"),
        writer_features=("variantType",),
    )
    with pytest.raises(
        ProtocolError, match="variantShredding in readerFeatures but not in writerFeatures"
    ) as caught:
        events(only_reader, WITH_VARIANT).check_may_read()
    assert caught.value.table == "events"


def test_column_mapping_of_reader_version_2_needs_no_reader_list():
    events(
        Protocol(min_reader_version=2, min_writer_version=7, writer_features=("columnMapping",)),
        PLAIN,
        {"delta.columnMapping.mode": "name"},
    ).check_may_append()


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (Protocol(min_reader_version=3, min_writer_version=6, reader_features=()), "but writer version 6"),
        (Protocol(min_reader_version=3, min_writer_version=7, writer_features=()), "has no readerFeatures"),
        (Protocol(min_reader_version=1, min_writer_version=7), "has no writerFeatures"),
        (
            Protocol(min_reader_version=1, min_writer_version=2, writer_features=("appendOnly",)),
            "its version is too low",
        ),
    ],
)
def test_contradictory_versions_and_lists_are_rejected(protocol, message):
    with pytest.raises(ProtocolError, match=message) as caught:
        events(protocol, PLAIN).check_may_read()
    assert caught.value.table == "events"


def test_the_shredding_property_without_the_feature_prevents_only_writes():
    """PROTOCOL.md, "Writer Requirements for Variant Shredding"."""
    events(listed("variantType"), WITH_VARIANT).check_may_read()
    with pytest.raises(
        ProtocolError, match=r"sets delta\.enableVariantShredding=true, but .* variantShredding"
    ) as caught:
        events(listed("variantType"), WITH_VARIANT, SHREDDED).check_may_append()
    assert caught.value.table == "events"
    events(listed("variantType", "variantShredding-preview"), WITH_VARIANT, SHREDDED).check_may_append()


def field(name, **metadata):
    return StructField(
        name, LONG, metadata={key.replace("__", "."): value for key, value in metadata.items()}
    )


@pytest.mark.parametrize(
    ("configuration", "fields", "column", "named"),
    [
        (
            {},
            (field("a", delta__identity__start=1, delta__identity__step=0),),
            "a",
            "the identity column 'a'",
        ),
        (
            {},
            (StructField("s", StructType((field("a", delta__identity__step=1),))),),
            "s.a",
            "the identity column 's.a'",
        ),
        ({"delta.enableIcebergCompatV2": "true"}, (), None, "delta.enableIcebergCompatV2=true"),
        (
            {},
            (StructField("v", VARIANT, metadata={"CURRENT_DEFAULT": "parse_json('1')"}),),
            "v",
            "the default parse_json('1') of the Variant column 'v'",
        ),
    ],
)
def test_an_unsupported_construct_prevents_appends_and_is_named(configuration, fields, column, named):
    """Writes need every check, reads do not."""
    schema = StructType((*PLAIN.fields, *fields))
    protocol = listed("variantType", "columnMapping", writer=("invariants", "icebergCompatV2"))
    events(protocol, schema).check_may_read()
    with raises_at(UnsupportedFeatureError, re.escape(named), table="events", column=column):
        events(protocol, schema, configuration).check_may_append()


def test_constraint_features_without_a_constraint_do_not_hinder_an_append():
    protocol = listed(
        "variantType",
        "columnMapping",
        writer=(
            "invariants",
            "checkConstraints",
            "generatedColumns",
            "identityColumns",
            "allowColumnDefaults",
            "icebergCompatV1",
        ),
    )
    schema = StructType((StructField("v", VARIANT, metadata={"CURRENT_DEFAULT": "null"}),))
    events(protocol, schema).check_may_append()


def test_a_new_table_without_needs_has_the_legacy_protocol():
    assert features.new_table_protocol(PLAIN, {}) == legacy(1, 2)
    assert features.new_table_protocol(PLAIN, {"delta.appendOnly": "true"}) == legacy(1, 2)


def test_a_new_table_with_a_shredded_variant_has_both_features_in_both_lists():
    """The features that version 2 implies stay, as in delta-spark."""
    protocol = features.new_table_protocol(WITH_VARIANT, SHREDDED)
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ("variantType", "variantShredding")
    assert protocol.writer_features == ("appendOnly", "invariants", "variantType", "variantShredding")


def test_the_shredding_property_alone_brings_the_type_feature_too():
    """PROTOCOL.md, "Variant Shredding"."""
    assert features.new_table_protocol(PLAIN, SHREDDED).reader_features == ("variantType", "variantShredding")


@pytest.mark.parametrize(
    ("configuration", "reader", "writer"),
    [
        ({"delta.columnMapping.mode": "name"}, {"columnMapping"}, {"columnMapping"}),
        ({"delta.enableDeletionVectors": "true"}, {"deletionVectors"}, {"deletionVectors"}),
        ({"delta.enableRowTracking": "true"}, None, {"rowTracking", "domainMetadata"}),
        ({"delta.enableInCommitTimestamps": "true"}, None, {"inCommitTimestamp"}),
        ({"delta.enableChangeDataFeed": "true"}, None, {"changeDataFeed"}),
    ],
)
def test_a_new_table_has_the_features_of_its_properties(configuration, reader, writer):
    protocol = features.new_table_protocol(PLAIN, configuration)
    assert (set(protocol.reader_features) if protocol.reader_features else None) == reader
    assert set(protocol.writer_features) == writer | {"appendOnly", "invariants"}
    events(protocol, PLAIN, configuration).check_may_append()


def test_a_new_table_with_timestamp_ntz_has_its_feature():
    assert features.new_table_protocol(WITH_NTZ, {}).reader_features == ("timestampNtz",)


def test_adding_a_variant_to_a_legacy_table_materialises_its_features():
    """The features are exactly variantType, invariants and appendOnly."""
    protocol = features.with_needed_features(legacy(1, 2), WITH_VARIANT, {})
    assert protocol == Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=("variantType",),
        writer_features=("appendOnly", "invariants", "variantType"),
    )


def test_adding_a_variant_to_a_table_with_legacy_column_mapping_keeps_it_in_both_lists():
    protocol = features.with_needed_features(legacy(2, 5), WITH_VARIANT, {})
    assert set(protocol.reader_features) == {"columnMapping", "variantType"}
    assert "columnMapping" in protocol.writer_features
    events(protocol, WITH_VARIANT).check_may_append()


@pytest.mark.parametrize(
    "names", [("variantType",), ("variantType-preview",), ("variantType", "variantType-preview")]
)
def test_a_protocol_that_has_the_type_under_any_name_stays_as_it_is(names):
    """A preview counts as its feature."""
    protocol = listed(*names)
    assert features.with_needed_features(protocol, WITH_VARIANT, {}) is protocol


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("variantType",), ("variantType", "variantShredding")),
        (("variantType-preview",), ("variantType-preview", "variantType", "variantShredding")),
        (("variantType", "variantShredding-preview"), ("variantType", "variantShredding-preview")),
        (
            ("variantType", "variantShredding", "variantShredding-preview"),
            ("variantType", "variantShredding", "variantShredding-preview"),
        ),
    ],
)
def test_enabling_shredding_never_swaps_a_name_that_is_there(before, after):
    """PROTOCOL.md, "Variant Shredding"."""
    protocol = features.with_needed_features(listed(*before), WITH_VARIANT, SHREDDED)
    assert protocol.reader_features == after
    assert protocol.writer_features == after


def test_features_that_we_do_not_know_survive_an_upgrade():
    protocol = features.with_needed_features(listed(writer=("someWriterFeature",)), WITH_VARIANT, {})
    assert protocol.writer_features == ("someWriterFeature", "variantType")
