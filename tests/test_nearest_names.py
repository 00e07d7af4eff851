"""The error of a name that does not exist proposes the nearest one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_variant as dv
from delta_variant._checks import nearest

ROW = pa.table({"population": [1], "event": pa.array(["{}"], pa.json_())})

TRIES: dict[str, tuple[Callable[[dv.Table], Any], str]] = {
    "a column of a read": (lambda t: t.scan(columns=["popultion"]), "did you mean `population`"),
    "a function": (lambda t: t.scan(where="uper(event:user::string) = 'A'"), "did you mean upper"),
    "a type": (lambda t: t.scan(where="event:user::strng = 'A'"), "did you mean string"),
    "a column to drop": (lambda t: t.drop_column("popultion"), "did you mean population"),
    "a column to rename": (lambda t: t.rename_column("POPULATON", "x"), "did you mean population"),
    "a partition": (
        lambda t: t.overwrite(ROW, partition_by="popultion", schema_mode="overwrite"),
        "did you mean",
    ),
    "a Variant column": (lambda t: t.append(ROW, variant_columns=["evnt"]), "did you mean event"),
    "a schema's column": (
        lambda t: t.append(ROW, shredding={"evnt": dv.ShreddingSchema.of({"a": pa.int64()})}),
        "did you mean event",
    ),
    "a mode": (lambda t: dv.write_table(t, ROW, mode="apend"), "did you mean 'append'"),
    "a property": (lambda t: t.set_properties({"delta.enableChangeDataFed": "true"}), "did you mean"),
    "a property to unset": (lambda t: t.unset_properties(["owners"]), "did you mean owner"),
    "a constraint": (lambda t: t.drop_constraint("positiv"), "did you mean positive"),
    "a column to update": (lambda t: t.update({"popultion": "1"}), "did you mean `population`"),
    "a column of the data": (
        lambda t: t.append(pa.table({"popultion": [1]})),
        "or name it 'population' if it is this column",
    ),
}


@pytest.mark.parametrize("kind", TRIES)
def test_an_error_proposes_the_nearest_name(tmp_path: Path, kind: str):
    table = dv.Table(tmp_path / "t")
    table.append(ROW, configuration={"delta.columnMapping.mode": "name", "owner": "ann"})
    table.add_constraint("positive", "population > 0")
    run, proposal = TRIES[kind]
    with pytest.raises((dv.DeltaVariantError, ValueError)) as raised:
        run(table)
    assert proposal in str(raised.value)


def test_a_name_unlike_all_others_has_no_proposal():
    assert nearest("x", ["population"]) is None
    assert nearest("Population", ["people", "population"]) == "population"
