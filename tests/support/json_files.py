"""Small files of each kind of JSON that people have, and the values that Python's json reads from them."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

POINT = {"type": "Point", "coordinates": [5.5, 52]}
EVENTS = [{"id": 1, "user": {"name": "Zoë"}, "tags": []}, {"id": "2", "text": 'a "}]\\" b\n'}, {"id": None}]


class JsonFile(NamedTuple):
    """The text of a file, the values in it, and its bytes."""

    text: str
    values: list[Any]
    encode: Callable[[bytes], bytes] = bytes
    encoding: str = "utf-8"

    @property
    def content(self) -> bytes:
        return self.encode(self.text.encode(self.encoding))


def lines(values: list[Any], end: str = "\n") -> JsonFile:
    """Return a file with a value on each line."""
    return JsonFile("".join(json.dumps(value) + end for value in values), values)


def documents(*values: Any, between: str = "\n", indent: int | None = 2, before: str = "") -> JsonFile:
    """Return a file of documents, which are indented by default."""
    texts = (before + json.dumps(value, indent=indent, ensure_ascii=False) for value in values)
    return JsonFile(between.join(texts), list(values))


def records(document: Any, values: list[Any], indent: int | None = 2) -> JsonFile:
    """Return a file with one document that has the values."""
    return JsonFile(json.dumps(document, indent=indent), values)


def _zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


FEATURES = [{"type": "Feature", "properties": {"n": n}, "geometry": POINT} for n in range(2)]
ENTRIES = [{"request": {"method": "GET", "url": "https://example.org/"}, "time": 1.25}]
CELLS = [{"cell_type": "markdown", "source": ["# Title\n"]}, {"cell_type": "code", "outputs": []}]
RUNS = [{"tool": {"driver": {"name": "lint"}}, "results": [{"ruleId": "E1"}]}]
TRAIL = [{"eventName": "PutObject", "userIdentity": {"type": "IAMUser"}}, {"eventName": "GetObject"}]
SBOM = {"bomFormat": "CycloneDX", "components": [{"name": "a", "version": "1.0"}], "metadata": {}}
BUNDLE = [{"resource": {"resourceType": "Patient", "id": "p1"}}, {"resource": {"id": "p2"}}]
SIGN_INS = [{"userPrincipalName": "a@example.org"}, {"userPrincipalName": "b@example.org"}]
SPANS = [[{"resource": {"attributes": []}, "scopeSpans": []}], [{"resource": {}}]]
MONGO = [{"_id": {"$oid": "5f"}, "n": {"$numberDecimal": "1.50"}}, {"_id": {"$oid": "60"}}]
CHANGES = [{"before": None, "after": {"id": 1}, "op": "c"}, {"before": {"id": 1}, "after": None, "op": "d"}]
LOGS = [{"message": '{"level": "info", "ms": 3}'}, {"message": "not JSON"}]
GRAPH = [{"@id": "a", "@type": "Thing"}, {"@id": "b"}]
BULK = [{"index": {"_id": "1"}}, {"n": 1}]

FILES = {
    "events.ndjson": lines(EVENTS),
    "rows.jsonl": lines([[1, "a"], [2, "b"]]),
    "windows.jsonlines": lines(EVENTS, "\r\n"),
    "array.json": records(EVENTS, EVENTS, None),
    "array_over_lines.json": records(EVENTS, EVENTS),
    "answer.json": documents(EVENTS[1]),
    "minified.json": documents(SBOM, indent=None),
    "stream.json": documents(*EVENTS),
    "firehose.json": documents(*EVENTS, between="", indent=None),
    "sequence.json": documents(*EVENTS, before="\x1e"),
    "items.json": records({"items": EVENTS, "next": "token"}, EVENTS),
    "nested.json": records({"data": {"total": 3, "items": EVENTS}, "errors": []}, EVENTS),
    "pages.ndjson": JsonFile(
        "".join(json.dumps({"page": n, "items": [value]}) + "\n" for n, value in enumerate(EVENTS)), EVENTS
    ),
    "cities.geojson": records({"type": "FeatureCollection", "features": FEATURES}, FEATURES),
    "land.topojson": documents({"type": "Topology", "arcs": [[[0, 0], [1, 1]]], "objects": {}}),
    "session.har": records({"log": {"version": "1.2", "entries": ENTRIES}}, ENTRIES),
    "notebook.ipynb": records({"cells": CELLS, "nbformat": 4}, CELLS),
    "lint.sarif": records({"version": "2.1.0", "runs": RUNS}, RUNS),
    "trail.json.gz": JsonFile(json.dumps({"Records": TRAIL}), TRAIL, gzip.compress),
    "bom.json": documents(SBOM),
    "openapi.json": documents({"openapi": "3.1.0", "paths": {"/a": {"get": {"not": {}}}}}),
    "patients.json": records({"resourceType": "Bundle", "entry": BUNDLE}, BUNDLE),
    "licenses.json": records({"licenses": [{"licenseId": "MIT"}]}, [{"licenseId": "MIT"}]),
    "traces.jsonl": JsonFile(
        "".join(json.dumps({"resourceSpans": spans}) + "\n" for spans in SPANS), [*SPANS[0], *SPANS[1]]
    ),
    "mongo.json": lines(MONGO),
    "mongo_pretty.json": documents(*MONGO),
    "changes.ndjson": lines(CHANGES),
    "bulk.ndjson": lines(BULK),
    "cloudwatch.ndjson": lines(LOGS),
    "graph.jsonld": records({"@context": {}, "@graph": GRAPH}, GRAPH),
    "sign_ins.json": JsonFile(json.dumps({"value": SIGN_INS}), SIGN_INS, encoding="utf-8-sig"),
    "powershell.json": JsonFile(json.dumps(EVENTS, ensure_ascii=False), EVENTS, encoding="utf-16"),
    "wide.json": JsonFile(json.dumps(EVENTS, ensure_ascii=False), EVENTS, encoding="utf-32"),
    "download": JsonFile(lines(EVENTS).text, EVENTS, gzip.compress),
    "events.zst": JsonFile(lines(EVENTS).text, EVENTS, _zstd),
    "events.xz": JsonFile(lines(EVENTS).text, EVENTS, lzma.compress),
    "events.bz2": JsonFile(lines(EVENTS).text, EVENTS, bz2.compress),
    "responses/1.json": documents(EVENTS[0]),
    "responses/2.json": documents(EVENTS[1]),
}
