"""A large file that is far away, for Arrow, which asks for the ranges that it needs. Its end was read already."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

TAIL = 1024 * 1024
"""Bytes of a file's end that are read at once: all of a small file, the footer of a large one."""
AT_ONCE = 16
"""Requests that wait for answers at the same time."""

Part = Callable[[int, int], bytes]
"""Reads the bytes from one place up to another."""


def opened(part: Part, size: int, tail: bytes) -> pa.NativeFile:
    """A file of some size, whose last bytes are known."""
    return pa.BufferReader(tail) if len(tail) == size else pa.PythonFile(_Ranges(part, size, tail), mode="r")


class _Ranges:
    def __init__(self, part: Part, size: int, tail: bytes):
        self._part, self._size, self._tail = part, size, tail
        self._place = 0
        self.closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, count: int = -1) -> bytes:
        start = self._place
        end = self._size if count < 0 else min(start + count, self._size)
        self._place = max(start, end)
        if end <= start:
            return b""
        known = self._size - len(self._tail)
        if start >= known:
            return self._tail[start - known : end - known]
        return self._part(start, end)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
