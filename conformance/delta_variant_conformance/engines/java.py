"""parquet-java and Iceberg's Java library in a JVM: sources of `java/`, their JARs, and lines of JSON.

The JARs are those of the environment variable CLASSPATH.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engine import Cell, Engine, VariantBytes
from ..parquet_footer import annotate
from ..typed_values import Schema

SOURCES = Path(__file__).with_name("java")
SHARED = ("Server", "ShreddingTypes")


class JavaError(Exception):
    """An error that the engine raised; the message starts with its class."""


class _Server:
    """The JVM of an engine, and what both engines offer. It ends with this process, whose pipe it reads."""

    def __init__(self, main: str, scratch: Path) -> None:
        """Compile and start the class `main`; raises FileNotFoundError without a JDK or JARs."""
        if not os.environ.get("CLASSPATH"):
            raise FileNotFoundError("no JARs: name a folder of them with --packages")
        class_path = f"{scratch}{os.pathsep}{os.environ['CLASSPATH']}"
        sources = [str(SOURCES / f"{name}.java") for name in (*SHARED, main)]
        compiler = [_tool("javac"), "-nowarn", "-d", str(scratch), "-cp", class_path, *sources]
        compiled = subprocess.run(compiler, capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise JavaError(f"the adapter does not compile with these JARs: {compiled.stderr}")
        self._scratch = scratch
        command = [_tool("java"), "-Xmx1g", "-cp", class_path, main]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.close)
        self.version = str(self._message()["version"])

    def close(self) -> None:
        with self._process:
            self._process.kill()

    def _call(self, operation: str, **request: Any) -> Any:
        """Return the answer to a request; raises JavaError, and SystemExit if the JVM ends."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"operation": operation, **request}) + "\n")
        self._process.stdin.flush()
        message = self._message()
        if "error" in message:
            raise JavaError(f"{message['error']}: {message['message']}")
        return message["answer"]

    def _message(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the JVM ended with status {self._process.wait()}")
        message: Mapping[str, Any] = json.loads(line)
        return message

    def decode(self, given: VariantBytes) -> Mapping[str, Any]:
        metadata, value = given.metadata.hex(), given.value.hex()
        typed: Mapping[str, Any] = self._call("decode", metadata=metadata, value=value)
        return typed

    def read(self, file: Path, column: str) -> Sequence[Cell]:
        return [_variant(each) for each in self._call("read", file=str(file), column=column)]

    def shred(self, file: Path, column: str, schema: Schema, out: Path) -> None:
        self._call("shred", file=str(file), column=column, schema=schema, out=str(out))


class _ParquetJava(_Server):
    """The Avro records of parquet-java have Variants as bytes."""

    def parse_json(self, text: str) -> Cell:
        return _variant(self._call("parse_json", text=text))


class _Iceberg(_Server):
    """The metrics of a Parquet file have bounds of a Variant's paths."""

    def collect_stats(self, file: Path, column: str) -> Mapping[str, Any]:
        # Iceberg knows a Variant by its annotation, which files of Delta tables may lack.
        copy = self._scratch / "annotated.parquet"
        shutil.copyfile(file, copy)
        annotate(copy, column)
        found = self._call("collect_stats", file=str(copy), column=column)
        return {**found, "min": _variant(found["min"]), "max": _variant(found["max"])}


def start_parquet_java(scratch: Path) -> Engine:
    """Start the JVM, and return the engine. It prints no JSON: its accessors decode."""
    server = _ParquetJava("ParquetJava", scratch)
    return Engine.of("parquet-java", server.version, server)


def start_iceberg(scratch: Path) -> Engine:
    """Start the JVM, and return the engine. It neither prints nor parses JSON: its accessors decode."""
    server = _Iceberg("Iceberg", scratch)
    return Engine.of("iceberg", server.version, server)


def _variant(found: Mapping[str, str] | None) -> VariantBytes | None:
    """Return a Variant of an answer, or None for SQL NULL."""
    if found is None:
        return None
    return VariantBytes(bytes.fromhex(found["metadata"]), bytes.fromhex(found["value"]))


def _tool(name: str) -> str:
    """Return the path of a program of the JDK; raises FileNotFoundError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin" if home else None)
    if found is None:
        raise FileNotFoundError(f"no {name}: install a JDK of version 17 or newer")
    return found
