"""Table properties: parsing of existing text, and the text that a new table can have."""

from __future__ import annotations

import pytest

from delta_variant.errors import ProtocolError
from delta_variant.protocol import properties


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("false", False), ("yes", False), ("", False)]
)
def test_a_boolean_is_on_only_for_the_word_true(text, value):
    """Any value other than `true`, in any case, means false."""
    configuration = {"delta.enableVariantShredding": text}
    assert properties.get(configuration, properties.ENABLE_VARIANT_SHREDDING) is value


@pytest.mark.parametrize(
    ("prop", "default"),
    [
        (properties.ENABLE_VARIANT_SHREDDING, False),
        (properties.APPEND_ONLY, False),
        (properties.CHECKPOINT_INTERVAL, 10),
        (properties.DATA_SKIPPING_NUM_INDEXED_COLS, 32),
        (properties.DATA_SKIPPING_STATS_COLUMNS, None),
        (properties.COLUMN_MAPPING_MODE, "none"),
        (properties.COLUMN_MAPPING_MAX_COLUMN_ID, 0),
        (properties.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, None),
        (properties.WRITE_STATS_AS_JSON, True),
        (properties.WRITE_STATS_AS_STRUCT, False),
    ],
)
def test_an_absent_property_has_the_default_of_the_protocol(prop, default):
    assert properties.get({}, prop) == default


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("delta.checkpointInterval", "100", 100),
        ("delta.dataSkippingNumIndexedCols", "-1", -1),
        ("delta.columnMapping.mode", "id", "id"),
        ("delta.inCommitTimestampEnablementTimestamp", "1795251402579", 1795251402579),
        ("delta.dataSkippingStatsColumns", "v20,v40, id", (("v20",), ("v40",), ("id",))),
        ("delta.dataSkippingStatsColumns", "st.w,`a.b`.c,`x,y``z`", (("st", "w"), ("a.b", "c"), ("x,y`z",))),
        ("delta.dataSkippingStatsColumns", "", ()),
        ("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-1", "_row-id-col-1"),
    ],
)
def test_get_reads_the_text_of_a_property(name, text, value):
    assert properties.get({name: text}, properties.PROPERTIES[name]) == value


REFUSED = [
    ("delta.checkpointInterval", "0"),
    ("delta.checkpointInterval", "ten"),
    ("delta.checkpointInterval", "1_0"),
    ("delta.checkpointInterval", "9" * 5000),
    ("delta.dataSkippingNumIndexedCols", "-2"),
    ("delta.columnMapping.mode", "Name"),
    ("delta.dataSkippingStatsColumns", "a,,b"),
    ("delta.dataSkippingStatsColumns", "a,"),
    ("delta.dataSkippingStatsColumns", "`a"),
    ("delta.checkpointPolicy", "v3"),
]


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_get_rejects_invalid_text_with_name_and_value(name, text):
    with pytest.raises(ProtocolError, match=f"invalid table property {name}='{text}'"):
        properties.get({name: text}, properties.PROPERTIES[name])


@pytest.mark.parametrize(
    ("name", "text"), [*REFUSED, ("delta.enableVariantShredding", "bla"), ("delta.appendOnly", "1")]
)
def test_check_new_rejects_an_invalid_value_with_name_and_value(name, text):
    """Only true and false can be set."""
    with pytest.raises(ProtocolError, match=f"invalid table property {name}='{text}'"):
        properties.check_new({name: text})


@pytest.mark.parametrize(
    "name", ["delta.feature.variantType", "delta.minReaderVersion", "delta.minWriterVersion"]
)
def test_check_new_rejects_names_of_protocol_fields(name):
    with pytest.raises(ProtocolError, match=f"{name}='3' is not a table property"):
        properties.check_new({name: "3"})


def test_check_new_lets_allowed_values_and_foreign_properties_pass():
    properties.check_new(
        {
            "delta.enableVariantShredding": "TRUE",
            "delta.checkpointInterval": "5",
            "owner": "me",
            "delta.logRetentionDuration": "interval 30 days",
            "delta.constraints.positive": "id > 0",
        }
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("delta.appendonly", "unknown table property 'delta.appendonly': did you mean delta.appendOnly"),
        ("delta.nope", "unknown table property 'delta.nope': choose a name without 'delta.'"),
    ],
)
def test_check_new_rejects_an_unknown_name(name, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        properties.check_new({name: "true"})


def test_check_new_rejects_row_tracking_both_enabled_and_suspended():
    both = {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}
    with pytest.raises(ProtocolError, match="cannot both be true"):
        properties.check_new(both)
