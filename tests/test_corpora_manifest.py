"""The manifest of the corpora: its assembly from archives, and the corpora that the tests read."""

from __future__ import annotations

import io
import lzma
import re
import tarfile
from pathlib import Path

import pytest
from support.corpora import Corpus, CorpusError, check, digest, load_manifest, main

FILES = {
    "LICENSE": b"free",
    "data/kept/_delta_log/0.json": b"{}",
    "data/kept/.hidden": b"1",
    "data/dropped/x": b"2",
    "values/.hidden": b"3",
    "values/a.bin": b"\x00",
    "values/deep/b.bin": b"\x01",
    "sources/b.json": b'{\n  "n": 1.50, "text": "a \\" b"\n}\n',
    "sources/a.json": b"[ 1,\r\n\t2 ]",
    "events.json": b'{"n": 1}\n{"n": 2}\n',
}
COMMIT = "c" * 40
HEADER = f"""
repository = "someone/things"
commit = "{COMMIT}"
licence = "MIT"
"""
PARTS = {
    "folder": """
  [[corpus.parts]]
  copy = "LICENSE"
  to = "LICENSE.txt"
  [[corpus.parts]]
  copy = "values"
  [[corpus.parts]]
  pack = "data"
  to = "tables"
  names = ["kept"]
""",
    "sources.ndjson.xz": """
  [[corpus.parts]]
  minify = "sources/*.json"
""",
    "events.ndjson.xz": """
  [[corpus.parts]]
  lines = "events.json"
""",
}


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Return the address of an archive of FILES, as GitHub would make it."""
    folder = tmp_path / "someone" / "things"
    folder.mkdir(parents=True)
    with tarfile.open(folder / f"{COMMIT}.tar.gz", "w:gz") as packed:
        for name, content in FILES.items():
            member = tarfile.TarInfo(f"things-{COMMIT}/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return f"{tmp_path.as_uri()}/{{repository}}/{{commit}}.tar.gz"


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    """Return a folder that the manifest describes, compressed in another way."""
    folder = tmp_path / "expected"
    (folder / "folder" / "deep").mkdir(parents=True)
    (folder / "folder" / "tables").mkdir()
    (folder / "folder" / "LICENSE.txt").write_bytes(b"free")
    (folder / "folder" / "a.bin").write_bytes(b"\x00")
    (folder / "folder" / "deep" / "b.bin").write_bytes(b"\x01")
    with tarfile.open(folder / "folder" / "tables" / "kept.tar.gz", "w:gz", compresslevel=1) as packed:
        for name in ("_delta_log/0.json", ".hidden"):
            content = FILES[f"data/kept/{name}"]
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    lines = b'[1,2]\n{"n":1.50,"text":"a \\" b"}\n'
    (folder / "sources.ndjson.xz").write_bytes(lzma.compress(lines, preset=0))
    (folder / "events.ndjson.xz").write_bytes(lzma.compress(FILES["events.json"], preset=0))
    return folder


@pytest.fixture
def manifest(tmp_path: Path, expected: Path) -> Path:
    """Return a manifest of the expected folder."""
    entries = [
        f'[[corpus]]\npath = "{path}"\nsha256 = "{digest(expected / path)}"{HEADER}{parts}'
        for path, parts in PARTS.items()
    ]
    file = tmp_path / "corpora.toml"
    file.write_text("\n".join(entries))
    return file


def command(folder: Path, manifest: Path, *options: str) -> int:
    return main([str(folder), "--manifest", str(manifest), *options])


def test_corpora_are_assembled_from_the_archives_of_their_commits(
    tmp_path: Path, archive: str, expected: Path, manifest: Path
):
    folder = tmp_path / "assembled"
    assert command(folder, manifest, "--archive", archive) == 0
    for path in PARTS:
        assert digest(folder / path) == digest(expected / path)
    assert {path.name for path in folder.iterdir()} == set(PARTS)
    # They are kept: nothing is downloaded again.
    assert command(folder, manifest, "--archive", f"{tmp_path.as_uri()}/absent") == 0


def test_a_corpus_that_differs_is_not_kept(
    tmp_path: Path, archive: str, manifest: Path, capsys: pytest.CaptureFixture[str]
):
    manifest.write_text(manifest.read_text().replace("events.json", "LICENSE"))
    folder = tmp_path / "assembled"
    assert command(folder, manifest, "--archive", archive) == 1
    assert "events.ndjson.xz differs from the manifest" in capsys.readouterr().err
    assert not (folder / "events.ndjson.xz").exists()
    assert (folder / "sources.ndjson.xz").exists()


def test_a_check_reports_missing_and_different_corpora(
    expected: Path, manifest: Path, capsys: pytest.CaptureFixture[str]
):
    assert command(expected, manifest, "--check") == 0
    (expected / "folder" / "a.bin").write_bytes(b"changed")
    (expected / "events.ndjson.xz").unlink()
    assert command(expected, manifest, "--check") == 1
    errors = capsys.readouterr().err
    assert "folder differs from the manifest" in errors
    assert "events.ndjson.xz is missing" in errors
    assert "sources" not in errors


def test_an_archive_cannot_write_outside_of_the_folder(tmp_path: Path, archive: str, manifest: Path):
    packed = tmp_path / "someone" / "things" / f"{COMMIT}.tar.gz"
    with tarfile.open(packed, "w:gz") as file:
        file.addfile(tarfile.TarInfo(f"things-{COMMIT}/values/../../../outside"))
    assert command(tmp_path / "a" / "b" / "c", manifest, "--archive", archive) == 1
    assert list(tmp_path.rglob("outside")) == []


def test_every_entry_has_a_source_and_a_digest():
    corpora = load_manifest()
    assert len(corpora) >= 17
    assert len({corpus.path for corpus in corpora}) == len(corpora)
    for corpus in corpora:
        assert re.fullmatch("[0-9a-f]{64}", corpus.sha256), corpus.path
        assert corpus.licence, corpus.path
        assert bool(corpus.parts) != bool(corpus.origin), corpus.path
        if corpus.parts:
            assert re.fullmatch("[0-9a-f]{40}", corpus.commit or ""), corpus.path
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", corpus.repository or ""), corpus.path


@pytest.mark.parametrize("corpus", load_manifest(), ids=lambda corpus: corpus.path)
def test_a_corpus_is_as_in_the_manifest(corpus: Corpus, corpora: Path):
    check(corpus, corpora)


def test_a_missing_corpus_without_a_source_says_how_it_was_made(tmp_path: Path):
    corpus = next(corpus for corpus in load_manifest() if corpus.origin)
    with pytest.raises(CorpusError, match=re.escape(str(corpus.origin))):
        check(corpus, tmp_path)
