"""Delta Kernel, with Delta's own client of Unity Catalog, reads our commits, and we read and publish its."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.unity_catalog import TOKEN, Catalog, ManagedTable, unity_catalog

import delta_variant as dv
from delta_variant.log import catalog as log_catalog
from delta_variant.storage.unity import CatalogTable

SOURCE = Path(__file__).with_name("kernel") / "Kernel.java"
JARS = Path(__file__).resolve().parents[2] / ".cache" / "kernel"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    if shutil.which("mvn") is None:
        pytest.skip("Maven downloads the JARs")
    if not JARS.is_dir():
        pytest.fail("`make jars` downloads the JARs")
    with unity_catalog(f"file://{tmp_path}") as catalog:
        monkeypatch.setenv("UNITY_CATALOG_URL", catalog.url)
        monkeypatch.setenv("UNITY_ACCESS_TOKEN", TOKEN)
        yield catalog


def kernel(catalog: Catalog, table: ManagedTable, *arguments: str) -> str:
    table_id = catalog.describe(table)["metadata"]["table-uuid"]
    name = table.uri.removeprefix("uc://")
    command = ["java", "-Xmx1g", "-cp", f"{JARS}/*", str(SOURCE)]
    command += ["catalog", catalog.url, TOKEN, table_id, table.location, name, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def append(table: ManagedTable, number: int) -> None:
    dv.write_table(table.uri, [{"id": number, "event": {"n": number}}], mode="append")


def test_the_kernel_reads_published_and_ratified_commits(catalog, monkeypatch):
    table = catalog.create()
    for number in range(11):
        append(table, number)
    monkeypatch.setattr(log_catalog, "publish", lambda *_: None)
    append(table, 11)
    dv.delete(table.uri, "id = 0")
    assert catalog.unpublished(table) == [12, 13]
    assert kernel(catalog, table) == f"13 {list(range(1, 12))}"


def test_a_commit_of_the_kernel_is_read_and_published(catalog):
    table = catalog.create()
    append(table, 1)
    assert kernel(catalog, table, "seven") == "2"
    assert (table.published, catalog.unpublished(table)) == ([0, 1], [2])
    snapshot = dv.load_snapshot(table.uri)
    assert (snapshot.version, snapshot.properties["kernel"]) == (2, "seven")
    append(table, 3)
    assert (table.published, catalog.unpublished(table)) == ([0, 1, 2, 3], [])
    assert kernel(catalog, table) == "3 [1, 3]"


def test_a_commit_of_the_kernel_wins_a_race(catalog, monkeypatch):
    table = catalog.create()
    ratify = CatalogTable.ratify

    def after_the_kernel(self: CatalogTable, *arguments: Any) -> Any:
        monkeypatch.setattr(CatalogTable, "ratify", ratify)
        assert kernel(catalog, table, "first") == "1"
        return ratify(self, *arguments)

    monkeypatch.setattr(CatalogTable, "ratify", after_the_kernel)
    with pytest.raises(dv.CommitConflictError, match="concurrent version 1 changed the metadata"):
        append(table, 1)
    assert kernel(catalog, table) == "1 []"
