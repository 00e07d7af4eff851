"""Assemble the corpora of corpora.toml from their public repositories, or check a folder against it.

    python tests/support/corpora.py FOLDER            assemble each absent corpus, and check all of them
    python tests/support/corpora.py --check FOLDER    check only

The exit status is 1 if a corpus is missing or differs. Only the standard library is needed, on Python 3.10
also tomli, which maturin and pytest depend on.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import io
import lzma
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.request import urlopen

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MANIFEST = Path(__file__).resolve().parent / "corpora.toml"
ARCHIVE = "https://github.com/{repository}/archive/{commit}.tar.gz"

# A string of JSON, or white space between tokens.
JSON_SPACE = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')

# The files of a part by their paths in it.
Files = Mapping[str, bytes]


class CorpusError(Exception):
    """A corpus that cannot be assembled, is missing or differs from the manifest."""


@dataclass(frozen=True)
class Part:
    """Files of a repository, and how they become files of a corpus.

    `kind` is a key of WRITERS. `source` is a file, a folder or a pattern in the repository. `to` is a path in
    the corpus. `names` restricts a folder to some of its members.
    """

    kind: str
    source: str
    to: str
    names: frozenset[str] | None

    def path_of(self, path: str) -> str | None:
        """Return the path of a file of the repository in this part, or None if the part does not have it."""
        if self.kind == "minify":
            return path if fnmatch.fnmatchcase(path, self.source) else None
        if path == self.source:
            return ""
        if not path.startswith(f"{self.source}/"):
            return None
        below = path.removeprefix(f"{self.source}/")
        return below if self.names is None or below.partition("/")[0] in self.names else None


@dataclass(frozen=True)
class Corpus:
    """An entry of the manifest. Without parts, the corpus cannot be assembled: `origin` describes it."""

    path: str
    licence: str
    sha256: str
    repository: str | None
    commit: str | None
    origin: str | None
    parts: tuple[Part, ...]


def load_manifest(path: Path = MANIFEST) -> list[Corpus]:
    """Return the entries of a manifest."""
    with path.open("rb") as file:
        return [_corpus_of(entry) for entry in tomllib.load(file)["corpus"]]


def _corpus_of(entry: Mapping[str, Any]) -> Corpus:
    texts = {name: entry.get(name) for name in ("repository", "commit", "origin")}
    parts = tuple(_part_of(part) for part in entry.get("parts", ()))
    return Corpus(entry["path"], entry["licence"], entry["sha256"], **texts, parts=parts)


def _part_of(entry: Mapping[str, Any]) -> Part:
    (kind,) = entry.keys() & WRITERS.keys()
    names = frozenset(entry["names"]) if "names" in entry else None
    return Part(kind, entry[kind], entry.get("to", ""), names)


def digest(path: Path) -> str:
    """Return the digest of a corpus: the SHA-256 of the lines that `sha256sum` prints for its files.

    A .tar.gz file counts as the files in it, and an .xz file as its text. How they were compressed does not
    change the digest.
    """
    if path.is_dir():
        files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    else:
        files = {path.name: path}
    return _digest_of({name: _content_digest(file) for name, file in files.items()})


def _digest_of(digests: Mapping[str, str]) -> str:
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


def _content_digest(file: Path) -> str:
    if file.name.endswith(".tar.gz"):
        with tarfile.open(file) as archive:
            members = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
            return _digest_of({name: _sha256(data.read()) for name, data in members.items() if data})
    return _sha256(lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check(corpus: Corpus, folder: Path) -> None:
    """Raise CorpusError unless a folder has the corpus as the manifest describes it."""
    path = folder / corpus.path
    if not path.exists():
        origin = f"; it cannot be assembled: {corpus.origin}" if corpus.origin else ""
        raise CorpusError(f"{corpus.path} is missing in {folder}{origin}")
    found = digest(path)
    if found != corpus.sha256:
        raise CorpusError(f"{path} differs from the manifest: expected {corpus.sha256}, got {found}")


def assemble(corpus: Corpus, folder: Path, archive: str = ARCHIVE) -> None:
    """Assemble a corpus in a folder from the archive of its commit. Nothing is kept of one that differs."""
    staged = folder / ".part"
    shutil.rmtree(staged, ignore_errors=True)
    url = archive.format(repository=corpus.repository, commit=corpus.commit)
    for part, files in zip(corpus.parts, _download(url, corpus.parts), strict=True):
        target = staged / corpus.path
        WRITERS[part.kind](target / part.to if part.to else target, files)
    check(corpus, staged)
    (folder / corpus.path).parent.mkdir(parents=True, exist_ok=True)
    (staged / corpus.path).rename(folder / corpus.path)
    shutil.rmtree(staged)


def _download(url: str, parts: Sequence[Part]) -> list[Files]:
    """Return the files of each part. The archive is streamed: only these files are held in memory."""
    found: list[dict[str, bytes]] = [{} for _ in parts]
    with urlopen(url, timeout=60) as stream, tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for member in archive:
            # GitHub puts everything into one folder, named after the commit.
            path = member.name.partition("/")[2]
            places = [(files, part.path_of(path)) for files, part in zip(found, parts, strict=True)]
            if not member.isfile() or all(below is None for _, below in places):
                continue
            if ".." in PurePosixPath(path).parts:
                raise CorpusError(f"{url} has a file outside of its folder: {path!r}")
            data = archive.extractfile(member)
            content = data.read() if data else b""
            for files, below in places:
                if below is not None:
                    files[below] = content
    return [dict(sorted(files.items())) for files in found]


def _copy(target: Path, files: Files) -> None:
    """Write a file, or the files of a folder that are not hidden."""
    for name, content in files.items():
        if not PurePosixPath(name).name.startswith("."):
            _write(target / name if name else target, content)


def _pack(target: Path, files: Files) -> None:
    """Write each folder in a folder as an archive."""
    for folder in sorted({name.partition("/")[0] for name in files}):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, content in files.items():
                if name.startswith(f"{folder}/"):
                    member = tarfile.TarInfo(name.removeprefix(f"{folder}/"))
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        _write(target / f"{folder}.tar.gz", packed.getvalue())


def _lines(target: Path, files: Files) -> None:
    """Compress files that have one JSON value in each line."""
    _write(target, lzma.compress(b"".join(files.values())))


def _minify(target: Path, files: Files) -> None:
    """Write each file, which has one JSON value, as a line. Numbers keep their spelling."""
    lines = (JSON_SPACE.sub(lambda match: match[1] or b"", content) + b"\n" for content in files.values())
    _write(target, lzma.compress(b"".join(lines)))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


WRITERS: Mapping[str, Callable[[Path, Files], None]] = {
    "copy": _copy,
    "pack": _pack,
    "lines": _lines,
    "minify": _minify,
}


def run(folder: Path, *, checks_only: bool, manifest: Path, archive: str) -> Iterator[CorpusError]:
    """Assemble and check each corpus, and yield the errors."""
    for corpus in load_manifest(manifest):
        try:
            if corpus.parts and not checks_only and not (folder / corpus.path).exists():
                assemble(corpus, folder, archive)
            check(corpus, folder)
            print(f"{corpus.path}: as in the manifest", flush=True)
        except CorpusError as error:
            yield error
        except (OSError, EOFError, tarfile.TarError) as error:
            yield CorpusError(f"{corpus.path} cannot be assembled: {error}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="do not assemble anything")
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--archive", default=ARCHIVE, help="the address of a repository's archive")
    given = parser.parse_args(arguments)
    errors = list(run(given.folder, checks_only=given.check, manifest=given.manifest, archive=given.archive))
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
