"""The files of a table in HDFS, by ``hdfs-native``: without a JVM, and with the settings of Hadoop's own clients.

A file is seen there before it is whole. So a commit is written under another name, and then renamed to its own, which
the name node does at once, and not if there is a file by that name. A file that was renamed never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EEXIST, ENOENT
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from penstock.errors import WarehouseError
from penstock.storage import ranges
from penstock.storage.file_cache import FILES, Identity
from penstock.storage.files import FileInfo, Held
from penstock.storage.locations import store_of

if TYPE_CHECKING:
    from hdfs_native import Client

_Thing = TypeVar("_Thing")
_Found = TypeVar("_Found")

_ATTEMPTS = "5"
"""How often a name node is asked that does not answer: about half a minute. By itself the client asks for minutes."""
_COPIED = 8 * 1024 * 1024
"""Bytes of a file that are copied at a time: no file is copied by HDFS itself."""


@lru_cache(maxsize=16)
def _client(store: str) -> Client:
    try:
        from hdfs_native import Client
    except ImportError:
        raise WarehouseError(
            f"the store {store!r} cannot be opened: the package hdfs-native is not installed. "
            "Install it with: pip install 'penstock-spark[hdfs]'."
        ) from None
    try:
        return Client(store, {"dfs.client.failover.max.attempts": _ATTEMPTS})
    except Exception as problem:
        raise WarehouseError(f"the store {store!r} cannot be opened: {_first_line(problem)}.") from None


@contextmanager
def _told(doing: str, url: str) -> Iterator[None]:
    """What HDFS says, in one line. The client raises errors of several kinds."""
    try:
        yield
    except FileExistsError:
        raise FileExistsError(EEXIST, "there is a file already", url) from None
    except FileNotFoundError:
        raise FileNotFoundError(ENOENT, "no such file", url) from None
    except WarehouseError:
        raise
    except Exception as problem:
        raise OSError(f"{doing} {url!r}: {_first_line(problem)}") from None


def _first_line(problem: BaseException) -> str:
    """Without Java's stack, whose lines the client has made one."""
    return (str(problem).strip().splitlines() or [""])[0].partition("\\n")[0]


class HdfsFiles:
    """The files below a URL of HDFS."""

    local = False

    def __init__(self, root: str):
        self.root = root
        self._store = store_of(root)
        self._client = _client(self._store)
        self._place = root.removeprefix(self._store).rstrip("/")

    def _path(self, name: str) -> str:
        """Where a file lies; its name may be the whole URL of one elsewhere in the same store."""
        if name.startswith(f"{self._store}/"):
            return name.removeprefix(self._store)
        return f"{self._place}/{name}".rstrip("/") or "/"

    def _url(self, name: str) -> str:
        return f"{self._store}{self._path(name)}"

    def _info(self, found: Any) -> FileInfo:
        return FileInfo(
            name=found.path.removeprefix(self._place).lstrip("/"), size=found.length,
            modified=found.modification_time / 1000, tag=f"{found.modification_time}-{found.length}",
        )  # fmt: skip

    def read(self, name: str) -> bytes:
        with _told("reading", self._url(name)):
            file = self._client.read(self._path(name))
            return bytes(file.read_range(0, len(file)))

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        return self.each(self.read, names)

    def each(self, do: Callable[[_Thing], _Found], things: Sequence[_Thing]) -> list[_Found]:
        if len(things) < 2:
            return [do(thing) for thing in things]
        with ThreadPoolExecutor(min(ranges.AT_ONCE, len(things))) as pool:
            return list(pool.map(do, things))

    def open(self, name: str) -> pa.NativeFile:
        key = self._url(name), "end"
        size, tail = FILES.kept(key, lambda: self._end(name), lambda found: len(found[1]))
        return ranges.opened(lambda start, end: self.part(name, start, end), size, tail)

    def _end(self, name: str) -> tuple[int, bytes]:
        with _told("reading", self._url(name)):
            file = self._client.read(self._path(name))
            size = len(file)
            start = max(size - ranges.TAIL, 0)
            return size, bytes(file.read_range(start, size - start))

    def part(self, name: str, start: int, end: int) -> bytes:
        with _told("reading", self._url(name)):
            return bytes(self._client.read(self._path(name)).read_range(start, end - start))

    def info(self, name: str) -> FileInfo:
        with _told("looking for", self._url(name)):
            found = self._client.get_file_info(self._path(name))
            if found.isdir:
                raise FileNotFoundError
            return self._info(found)

    def exists(self, name: str) -> bool:
        try:
            self.info(name)
        except FileNotFoundError:
            return False
        return True

    def identity(self, name: str) -> Identity:
        """A data file has a name that no other ever had, so that there is nothing to ask."""
        return (self._url(name),)

    def names(self, folder: str) -> Sequence[str]:
        return [info.name.removeprefix(f"{folder}/") for info in self.listing(folder)]

    def listing(self, folder: str = "", *, after: str = "") -> list[FileInfo]:
        found = [self._info(status) for status in self._listed(folder, recursive=True) if not status.isdir]
        return sorted((info for info in found if info.name > after), key=lambda info: info.name)

    def folders(self) -> list[FileInfo]:
        return [self._info(status) for status in self._listed("", recursive=False) if status.isdir]

    def _listed(self, folder: str, *, recursive: bool) -> list[Any]:
        with suppress(FileNotFoundError), _told("listing", self._url(folder)):
            return list(self._client.list_status(self._path(folder.rstrip("/")), recursive))
        return []

    def write(self, name: str, fill: Callable[[pa.NativeFile], object]) -> int:
        buffer = pa.BufferOutputStream()
        fill(buffer)
        data = buffer.getvalue().to_pybytes()
        with _told("writing", self._url(name)):
            try:
                self._create(self._path(name), data, overwrite=True)
            except FileNotFoundError:
                if "/" not in name:
                    raise
                self._client.mkdirs(self._path(name.rpartition("/")[0]), create_parent=False)
                self._create(self._path(name), data, overwrite=True)
        FILES.put((self._url(name), "end"), (len(data), data[-ranges.TAIL :]), min(len(data), ranges.TAIL))
        return len(data)

    def _create(self, path: str, data: bytes, *, overwrite: bool) -> None:
        """A file in a folder that is there."""
        from hdfs_native import WriteOptions

        with self._client.create(path, WriteOptions(overwrite=overwrite, create_parent=False)) as out:
            if data:
                out.write(data)

    def make_folder(self, folder: str) -> None:
        self.begin(folder)

    def begin(self, folder: str) -> None:
        with _told("making", self._url(folder)):
            self._client.mkdirs(self._path(folder), create_parent=True)

    def take(self, other: str, names: Iterable[str]) -> None:
        source = HdfsFiles(other)
        self.each(lambda name: self._copy(source, name), list(names))

    def _copy(self, source: HdfsFiles, name: str) -> None:
        from hdfs_native import WriteOptions

        with _told("copying", source._url(name)):
            file = source._client.read(source._path(name))
            with self._client.create(self._path(name), WriteOptions(overwrite=True)) as out:
                for start in range(0, len(file), _COPIED):
                    out.write(file.read_range(start, min(_COPIED, len(file) - start)))

    @contextmanager
    def hold(self, folder: str) -> Iterator[Held]:
        """No table is made where one was dropped, so that its name tells a folder."""
        held = _HeldFolder(self, folder)
        if not held.is_there:
            raise FileNotFoundError(ENOENT, "no such folder", self._url(folder))
        yield held

    def put_if_absent(self, folder: str, name: str, data: bytes) -> str:
        draft = f"{folder}/.{name.partition('.')[0]}.{uuid4().hex}.draft"
        with _told("writing", self._url(f"{folder}/{name}")):
            try:
                self._create(self._path(draft), data, overwrite=False)
                self._rename_first(draft, f"{folder}/{name}", data)
            except BaseException:
                with suppress(Exception):  # nothing was put, whatever becomes of the draft
                    self._client.delete(self._path(draft))
                raise
        return self.info(f"{folder}/{name}").tag

    def _rename_first(self, draft: str, name: str, data: bytes) -> None:
        """Rename a draft, unless there is a file already. A request that was sent once more may find its own."""
        try:
            self._client.rename(self._path(draft), self._path(name), overwrite=False)
        except Exception:
            if self.exists(draft):
                if self.exists(name):
                    raise FileExistsError from None
                raise
            if self.read(name) != data:
                raise FileExistsError from None

    def move(self, name: str, to: str) -> None:
        with _told("moving", self._url(name)):
            if "/" in to:
                self._client.mkdirs(self._path(to.rpartition("/")[0]), create_parent=True)
            self._client.rename(self._path(name), self._path(to), overwrite=True)

    def delete(self, names: Iterable[str]) -> None:
        self.each(self._delete, list(names))

    def _delete(self, name: str, *, recursive: bool = False) -> None:
        with suppress(FileNotFoundError), _told("deleting", self._url(name)):
            self._client.delete(self._path(name), recursive)

    def delete_folder(self, folder: str = "") -> None:
        self._delete(folder, recursive=True)

    def drop_empty_folders(self, *, but: str) -> None:
        found = self._listed("", recursive=True)
        full = {status.path.rpartition("/")[0] for status in found}
        kept = self._path(but)
        for status in found:
            if status.isdir and status.path not in full and not f"{status.path}/".startswith(f"{kept}/"):
                with suppress(OSError):  # something has come
                    self._delete(status.path.removeprefix(self._place).lstrip("/"))


@dataclass(frozen=True)
class _HeldFolder:
    files: HdfsFiles
    folder: str

    @property
    def is_there(self) -> bool:
        with suppress(FileNotFoundError), _told("looking for", self.files._url(self.folder)):
            self.files._client.get_file_info(self.files._path(self.folder))
            return True
        return False

    def put_if_absent(self, name: str, data: bytes) -> str:
        return self.files.put_if_absent(self.folder, name, data)
