"""The seed inputs of the fuzzer: real files of the corpora, and small files written here."""

from __future__ import annotations

import io
import json
import lzma
import os
import sys
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import delta_variant as dv
from delta_variant.protocol import z85

PROJECT = Path(__file__).resolve().parents[2]
CORPORA = Path(os.environ.get("DELTA_VARIANT_CORPORA") or PROJECT.parent / "shared" / "corpora")
MAX_INPUT = 64 << 10

DOCUMENTS = [
    '{"a": 1, "b": {"c": [1, 2.5, null]}, "id": 12345678901, "type": "text of a row", "value": 12.50}',
    '{"a": "one", "b": {"c": []}, "é": true, "": {"": [[{"a": 1}]]}, "type": null}',
    '[{"a": 1e10, "b": -0.0}, {"a": 12345678901234567890123456789012345678}, "\\ud83d\\ude00"]',
    '"scalar"',
]
# Encoded as rust/fuzz/src/schema.rs decodes them.
SCHEMAS = [b"", b"\x04", bytes([202, 0, 4, 1, 201, 0, 160, 16, 9, 2, 4, 14]), bytes([160, 200, 0, 14])]


def write_seeds(folder: Path) -> None:
    """Write the inputs of each target to a folder named after it."""
    targets = {
        "variant": _variants(),
        "functions": _functions(),
        "json": _json(),
        "parquet": _parquet(),
        "split_variant": _split(),
        "deletion_vector": _deletion_vectors(),
        "lines": _lines(),
    }
    for target, inputs in targets.items():
        target_folder = folder / target
        target_folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(one for one in inputs if len(one) <= MAX_INPUT):
            (target_folder / f"{number:04}").write_bytes(content)


def _part(content: bytes) -> bytes:
    return bytes([len(content)]) + content


def _concatenated() -> Iterator[bytes]:
    """Yield Variants as `metadata‖value`."""
    parquet_testing = CORPORA / "parquet-testing"
    for file in sorted((parquet_testing / "variant").glob("*.metadata")):
        yield file.read_bytes() + file.with_suffix(".value").read_bytes()
    for file in sorted((parquet_testing / "shredded_variant").glob("*.variant.bin")):
        yield file.read_bytes()
    for line in _corpus_lines(1):
        variant = dv.Variant.from_json(line)
        yield variant.metadata + variant.value


def _variants() -> Iterator[bytes]:
    for content in _concatenated():
        yield from (_part(schema) + content for schema in SCHEMAS)


def _functions() -> Iterator[bytes]:
    """Yield a path, options, an argument and a Variant for each."""
    arguments = [dv.Variant.from_json(text) for text in ("7", '"x"', '{"a": [null]}', "[1, [2]]")]
    paths = [b"", b"\x00", b"\x01\x80", b"\x81\x00", b"\x00\x01\x02"]
    for number, content in enumerate(_concatenated()):
        argument = arguments[number % len(arguments)]
        path = paths[number % len(paths)]
        for options in (number % 4, number % 4 + 12):
            yield _part(path) + bytes([options]) + _part(argument.metadata + argument.value) + content


def _split() -> Iterator[bytes]:
    yield from _concatenated()
    for log in (CORPORA / "delta-golden").rglob("*.json"):
        for line in log.read_text(encoding="utf-8").splitlines():
            stats = json.loads(json.loads(line).get("add", {}).get("stats") or "{}")
            for bounds in ("minValues", "maxValues"):
                for text in stats.get(bounds, {}).values():
                    if isinstance(text, str) and len(text) % 5 == 0:
                        yield z85.decode(text)


def _corpus_lines(count: int) -> Iterator[str]:
    for file in sorted((CORPORA / "json").glob("*.ndjson.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            yield from (line for line in islice(lines, count) if len(line) < 4096)


def _json() -> Iterator[bytes]:
    texts = [document.encode() for document in DOCUMENTS]
    texts += [line.encode() for line in _corpus_lines(2)]
    files = sorted((CORPORA / "json-test-suite" / "test_parsing").glob("*.json"))
    texts += [file.read_bytes() for file in files if file.stat().st_size < 4096]
    for number, text in enumerate(texts):
        yield bytes([number % 4]) + _part(SCHEMAS[number % len(SCHEMAS)]) + text
    yield b"\0" + _part(SCHEMAS[2]) + b"\n".join(texts[:4])


def _lines() -> Iterator[bytes]:
    documents = [document.encode() for document in DOCUMENTS]
    for form, file in enumerate([b"\r\n".join(documents), b"[" + b",\n".join(documents) + b"]"]):
        for most in (60, 255):
            yield _part(b"\x07\x01\x1e") + bytes([form, most]) + file
            yield _part(b"\x03") + bytes([2, most]) + b"\xef\xbb\xbf" + file


def _deletion_vectors() -> Iterator[bytes]:
    yield bytes.fromhex("d1d339640100000000000000000000003a30000001000000000001001000000007000900")
    # A run of two rows from row 5, in the format of the Roaring specification.
    yield bytes.fromhex(
        "d1d33964" + "0100000000000000" + "00000000" + "3b30000001" + "00000100" + "010005000100"
    )
    with tarfile.open(CORPORA / "delta-spark" / "d_dv.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if member.name.endswith(".bin") and content is not None:
                # Version, length of the vector, the vector and its checksum.
                yield content.read()[5:-4]


def _parquet() -> Iterator[bytes]:
    for file in sorted(CORPORA.glob("*/**/*.parquet")):
        yield file.read_bytes()
    for archive in sorted((CORPORA / "delta-spark").glob("*.tar.gz")):
        with tarfile.open(archive) as members:
            for member in members:
                content = members.extractfile(member)
                if member.name.endswith(".parquet") and content is not None:
                    yield content.read()
    yield from _written_parquet()


def _written_parquet() -> Iterator[bytes]:
    """Yield files with our shredded columns, and pyarrow files with encodings that we do not write."""
    variants = dv.parse_json(pa.array(DOCUMENTS * 3))
    for codec in ("none", "snappy", "zstd", "gzip", "lz4", "brotli"):
        shredded = pa.array(dv.shred(variants, dv.infer_shredding_schema(variants)))
        plain = pa.table({"event": shredded, "n": pa.array(range(len(shredded)))})
        yield _pyarrow(plain, compression=codec)
    for version in ("1.0", "2.0"):
        for encoding in ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"):
            numbers = pa.table({"n": pa.array([*range(40), None])})
            options = {"use_dictionary": False, "column_encoding": encoding}
            yield _pyarrow(numbers, data_page_version=version, **options)
        for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
            texts = pa.table({"s": pa.array(["one", "once", None, "two"] * 5)})
            yield _pyarrow(texts, data_page_version=version, use_dictionary=False, column_encoding=encoding)
        # Row groups of several pages, which are copied by their headers or by their index.
        for has_index in (False, True):
            pages = {"row_group_size": 100, "write_batch_size": 10, "data_page_size": 10}
            yield _pyarrow(_rows(), data_page_version=version, write_page_index=has_index, **pages)
    map_type = pa.map_(pa.string(), pa.list_(pa.struct({"a": pa.int8()})))
    yield _pyarrow(pa.table({"m": pa.array([[("k", [{"a": 1}])], [], None], map_type)}))


def _rows() -> pa.Table:
    """Return columns that are copied as they are encoded, and decimals, which we write as INT32."""
    numbers = pa.array([*range(150), None])
    texts = pa.array([*"abc" * 50, None])
    nested = pa.StructArray.from_arrays([numbers, texts], ["n", "s"])
    lists = pa.array([[number] for number in range(150)] + [None])
    decimals = numbers.cast(pa.int16()).cast(pa.decimal128(5))
    return pa.table({"n": numbers, "s": texts, "o": nested, "l": lists, "d": decimals})


def _pyarrow(table: pa.Table, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
