"""Run an engine of Java in a JVM: sources of `java/`, compiled with its JARs, and lines of JSON.

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

from ..engine import Cell, VariantBytes
from ..shredding_schema import Schema

__all__ = ["JavaServer"]

SOURCES = Path(__file__).with_name("java")
SHARED = ("Server", "ShreddingTypes")


class JavaError(Exception):
    """An error that the engine raised; the message starts with its class."""


class JavaServer:
    """The process of an engine. It ends with this one, also because its standard input ends."""

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
        command = [_tool("java"), "-Xmx1g", "-cp", class_path, main]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.close)
        self.version = str(self._message()["version"])

    def close(self) -> None:
        """End the JVM."""
        with self._process:
            self._process.kill()

    def call(self, operation: str, **request: Any) -> Any:
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
        """Return a Variant as a typed value."""
        typed: Mapping[str, Any] = self.call("decode", metadata=given.metadata.hex(), value=given.value.hex())
        return typed

    def parse_json(self, text: str) -> Cell:
        """Parse JSON text to a Variant."""
        return variant(self.call("parse_json", text=text))

    def read(self, file: Path, column: str) -> Sequence[Cell]:
        """Return the Variants of a file."""
        return [variant(each) for each in self.call("read", file=str(file), column=column)]

    def shred(self, file: Path, column: str, schema: Schema, out: Path) -> None:
        """Write a Variant column shredded."""
        self.call("shred", file=str(file), column=column, schema=schema, out=str(out))

    def collect_stats(self, file: Path, column: str) -> Mapping[str, Any]:
        """Return the bounds and the count of nulls of a Variant column."""
        found = self.call("collect_stats", file=str(file), column=column)
        return {**found, "min": variant(found["min"]), "max": variant(found["max"])}


def variant(found: Mapping[str, str] | None) -> VariantBytes | None:
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
