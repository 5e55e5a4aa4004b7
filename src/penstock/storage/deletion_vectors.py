"""Deletion vectors in Delta's open format: which rows of a data file are gone, by their place in it.

A vector is a magic number and a 64-bit roaring bitmap in the portable layout. A small one stands in the log itself, as
Z85 text; larger ones share a file: a version byte, then for each its size, its bytes and their CRC-32. The log holds a
descriptor, which says where a vector is. Nothing here reads or writes a file.
"""

from __future__ import annotations

import base64
import struct
import zlib
from array import array
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

LARGEST_INLINE = 1024
"""Bytes up to which a vector stands in the log: every reader of the log reads it, and checkpoints repeat it."""

_MAGIC = struct.pack("<i", 1681511377)
_FILE_VERSION = b"\x01"
_ID_LENGTH = 20
_BASE85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85 = bytes.maketrans(_BASE85, _Z85)
_FROM_Z85 = bytes.maketrans(_Z85, _BASE85)

Descriptor = dict[str, Any]
"""A vector as an ``add`` or ``remove`` of the log tells of it."""


def encode(hidden: BitMap64) -> bytes:
    """The bytes of a vector.

    >>> encode(BitMap64([1])).hex()
    'd1d339640100000000000000000000003a3000000100000000000000100000000100'
    """
    compact = hidden.copy()
    compact.run_optimize()
    return _MAGIC + compact.serialize()


def decode(data: bytes) -> BitMap64:
    """The rows that a vector's bytes hide; ``ValueError`` when they are none."""
    if not data.startswith(_MAGIC):
        raise ValueError("these bytes do not begin as a deletion vector does")
    return BitMap64.deserialize(data[len(_MAGIC) :])


def describe(vectors: Mapping[str, BitMap64], file_id: UUID) -> tuple[dict[str, Descriptor], bytes]:
    """A descriptor for each vector, and what the file ``file_name(file_id)`` must hold: nothing if all are inline."""
    descriptors: dict[str, Descriptor] = {}
    content = b""
    for name, hidden in vectors.items():
        data = encode(hidden)
        if len(data) <= LARGEST_INLINE:
            where: Descriptor = {"storageType": "i", "pathOrInlineDv": _text(data)}
        else:
            content = content or _FILE_VERSION
            where = {"storageType": "u", "pathOrInlineDv": _text(file_id.bytes), "offset": len(content)}
            content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        descriptors[name] = {**where, "sizeInBytes": len(data), "cardinality": len(hidden)}
    return descriptors, content


def file_name(file_id: UUID) -> str:
    return f"deletion_vector_{file_id}.bin"


def stored_at(descriptor: Descriptor) -> str | None:
    """The file that holds a vector, relative to its table or with all of its path; None for one that is inline.

    >>> stored_at({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"})
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    text = str(descriptor["pathOrInlineDv"])
    match descriptor["storageType"]:
        case "i":
            return None
        case "u":
            prefix, encoded = text[:-_ID_LENGTH], text[-_ID_LENGTH:]
            return (f"{prefix}/" if prefix else "") + file_name(UUID(bytes=_bytes(encoded)))
    return unquote(text)


def hidden_by(descriptor: Descriptor, content: bytes = b"") -> BitMap64:
    """The rows that a vector hides; ``content`` is that of its file, if it has one."""
    size = int(descriptor["sizeInBytes"])
    if descriptor["storageType"] == "i":
        return decode(_bytes(str(descriptor["pathOrInlineDv"]))[:size])
    start = int(descriptor.get("offset") or 0)
    data = content[start + 4 : start + 4 + size]
    stored_size, checksum = content[start : start + 4], content[start + 4 + size : start + 8 + size]
    if stored_size != struct.pack(">i", size) or checksum != struct.pack(">I", zlib.crc32(data)):
        raise ValueError("a deletion vector's file does not hold what the log says, or is damaged")
    return decode(data)


def unique_id(descriptor: Descriptor | None) -> str:
    """What tells a file with one vector from the same file with another; empty without a vector."""
    if descriptor is None:
        return ""
    offset = descriptor.get("offset")
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def from_arrow(places: pa.Array) -> BitMap64:
    """Places given as numbers."""
    numbers = array("Q")
    numbers.frombytes(places.cast(pa.int64()).to_numpy().tobytes())
    return BitMap64(numbers)


def as_bits(hidden: BitMap64, length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each of a file's rows whether it is hidden."""
    bits = np.zeros(length, dtype=np.bool_)
    bits[np.frombuffer(hidden.to_array(), dtype=np.uint64)] = True
    return bits


def as_words(hidden: BitMap64) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The same as whole numbers of 64 bits, the lowest bit first, up to the last row that is hidden.

    >>> as_words(BitMap64([0, 2, 64])).tolist()
    [5, 1]
    """
    return np.packbits(as_bits(hidden, words_for(hidden) * 64), bitorder="little").view(np.int64)


def words_for(hidden: BitMap64) -> int:
    return hidden.max() // 64 + 1 if hidden else 0


def _text(data: bytes) -> str:
    """Z85 takes bytes by fours: zeros fill the last four up, and the descriptor tells the true size."""
    filled = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(filled).translate(_TO_Z85).decode()


def _bytes(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))
