"""Hash functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from ..._arrow import Array
from ...errors import ExpressionError
from ..tree import Call, Expression, output_type
from ..types import type_name
from .signature import ScalarFunction, by_kernel, function, over_arrays, over_first

SHA2: dict[int, str] = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _hexadecimal(values: Array, algorithm: Callable[[bytes], Any]) -> Array:
    """Return the digests of binary values; equal values are hashed once."""
    known = values.dictionary_encode()
    digests = pa.array([algorithm(each).hexdigest() for each in known.dictionary.to_pylist()], pa.string())
    return digests.take(known.indices)


def _digest(algorithm: Callable[..., Any]) -> ScalarFunction:
    hashed = partial(algorithm, usedforsecurity=False)
    return function(("binary",), pa.string(), over_arrays(lambda values: _hexadecimal(values, hashed)))


def _sha2(_: Call, values: Array, bits: Any) -> Array:
    name = SHA2.get(bits.as_py())
    if name is None:
        return pa.nulls(len(values), pa.string())
    return _hexadecimal(values, lambda value: hashlib.new(name, value))


def _hash_type(name: str, result: pa.DataType) -> Callable[..., pa.DataType]:
    def type_of(arguments: Sequence[Expression]) -> pa.DataType:
        if any("map<" in type_name(output_type(each)) for each in arguments):
            raise ExpressionError(f"`{name}` does not support maps")
        return result

    return type_of


HASHES: dict[str, ScalarFunction] = {
    "hash": function(("any",), _hash_type("hash", pa.int32()), by_kernel("hash"), is_repeated=True),
    "xxhash64": function(
        ("any",), _hash_type("xxhash64", pa.int64()), by_kernel("xxhash64"), is_repeated=True
    ),
    "md5": _digest(hashlib.md5),
    **dict.fromkeys(("sha", "sha1"), _digest(hashlib.sha1)),
    "sha2": function(("binary", "int"), pa.string(), over_first(_sha2), constant=(1,)),
}
