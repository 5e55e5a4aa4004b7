"""Hashes of text and bytes over rows on the driver, where they have one definition everywhere."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.types import Value
from penstock.frames.arrow.expressions.values import Rows, column, each, function, rule, value
from penstock.frames.frame import NotHere

_BITS = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


@rule(exp.MD5, reads=("this",))
def _md5(node: exp.MD5, rows: Rows) -> Value:
    return _hashed(node.this, rows, lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest())


@rule(exp.SHA, reads=("this",))
def _sha(node: exp.SHA, rows: Rows) -> Value:
    return _hashed(node.this, rows, lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest())


@rule(exp.SHA2, reads=("this", "length"))
def _sha2(node: exp.SHA2, rows: Rows) -> Value:
    bits = value(node.args["length"], rows)
    if not isinstance(bits, pa.Scalar) or bits.type != pa.int32() or bits.as_py() not in _BITS:
        raise NotHere
    name = _BITS[bits.as_py()]
    return _hashed(node.this, rows, lambda data: hashlib.new(name, data).hexdigest())


@function("CRC32", takes=(1,))
def _crc(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _hashed(arguments[0], rows, zlib.crc32, pa.int64())


def _hashed(node: exp.Expr, rows: Rows, made: Callable[[bytes], Any], to: pa.DataType | None = None) -> pa.Array:
    found = column(node, rows)
    if found.type not in (pa.string(), pa.binary(), pa.null()):
        raise NotHere
    return each(found.cast(pa.binary()), made, to or pa.string())
