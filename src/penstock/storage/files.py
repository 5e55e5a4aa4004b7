"""The files of a table, wherever they lie: one narrow door to local directories and to object stores.

Names are relative to the table. What stands here knows nothing of Delta. A commit is ``put_if_absent`` into a folder
that is held: of several who put one name, one succeeds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import uuid4

from penstock.storage.file_cache import Identity
from penstock.storage.locations import is_store

if TYPE_CHECKING:
    import pyarrow as pa

_Thing = TypeVar("_Thing")
_Found = TypeVar("_Found")


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """A file as a listing tells of it. ``modified`` is in seconds since 1970."""

    name: str
    size: int
    modified: float
    tag: str = ""
    """What differs when a file of an object store is another one under the same name."""


class Files(Protocol):
    """The files below one place. Who asks for one that is not there gets ``FileNotFoundError``."""

    root: str

    @property
    def local(self) -> bool:
        """Whether a question costs next to nothing; elsewhere it is a round trip, and several are better at once."""

    def read(self, name: str) -> bytes: ...

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        """Several files, at once where that saves time."""

    def each(self, do: Callable[[_Thing], _Found], things: Sequence[_Thing]) -> list[_Found]:
        """What ``do`` finds of each of some things; at once, too."""

    def open(self, name: str) -> pa.NativeFile:
        """A file whose parts are read as they are needed. Such files never change."""

    def info(self, name: str) -> FileInfo: ...

    def exists(self, name: str) -> bool: ...

    def identity(self, name: str) -> Identity:
        """What tells the file that is there now from others that had its name. Ask before it is read."""

    def names(self, folder: str) -> Sequence[str]:
        """The files of a folder by their names in it, where nothing else of them matters."""

    def listing(self, folder: str = "", *, after: str = "") -> list[FileInfo]:
        """All files below a folder; those only whose names come ``after`` one. Empty if there are none."""

    def folders(self) -> list[FileInfo]:
        """The folders right here; ``modified`` is 0 where folders have no time."""

    def write(self, name: str, fill: Callable[[pa.NativeFile], object]) -> int:
        """Make a file under a name that nobody else uses; gives its size. Its folder is made if it is not there, but
        not this place: a table that was dropped does not come back."""

    def make_folder(self, folder: str) -> None:
        """Make a folder that is not there yet, where folders are something. This place is not made for it."""

    def begin(self, folder: str) -> None:
        """Make this place, with a folder in it."""

    def take(self, other: str, names: Iterable[str]) -> None:
        """Have files of another place here too, under the same names; those that are here already are the same."""

    def hold(self, folder: str) -> AbstractContextManager[Held]:
        """A folder as it is now; ``FileNotFoundError`` if there is none."""

    def move(self, name: str, to: str) -> None: ...

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; one that is not there is none to delete."""

    def delete_folder(self, folder: str = "") -> None:
        """Delete a folder and all below it, or this place."""

    def drop_empty_folders(self, *, but: str) -> None:
        """Delete the folders in which there is nothing, except one and what is in it."""


class Held(Protocol):
    """A folder that was there. What is put into it goes to no other that comes in its place."""

    @property
    def is_there(self) -> bool:
        """Whether it is still the one that lies there."""

    def put_if_absent(self, name: str, data: bytes) -> str:
        """Make a file all at once; ``FileExistsError`` if there is one, ``FileNotFoundError`` if the folder is gone.

        Gives its tag, as a listing tells it.
        """


@dataclass(frozen=True)
class _HeldDirectory:
    """It is the directory that is held, not its name: of a table that was dropped it is gone for good."""

    place: str
    number: int

    @property
    def is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self.number), os.stat(self.place))
        except FileNotFoundError:
            return False

    def put_if_absent(self, name: str, data: bytes) -> str:
        """It is written under another name first, and then linked to its own, which fails if there is one."""
        draft = f".{name.partition('.')[0]}.{uuid4().hex}.draft"
        try:
            with open(draft, "xb", opener=partial(os.open, dir_fd=self.number)) as out:
                out.write(data)
            os.link(draft, name, src_dir_fd=self.number, dst_dir_fd=self.number)
            return ""
        finally:
            with suppress(OSError):  # it is put or not, whatever becomes of the draft
                os.unlink(draft, dir_fd=self.number)


class LocalFiles:
    """A directory of this machine."""

    local = True

    def __init__(self, root: str):
        self.root = root.rstrip("/") or "/"

    def read(self, name: str) -> bytes:
        with open(f"{self.root}/{name}", "rb", buffering=0) as file:
            return file.read()

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        return [self.read(name) for name in names]

    def each(self, do: Callable[[_Thing], _Found], things: Sequence[_Thing]) -> list[_Found]:
        return [do(thing) for thing in things]

    def open(self, name: str) -> pa.NativeFile:
        return _local().open_input_file(f"{self.root}/{name}")

    def info(self, name: str) -> FileInfo:
        found = os.stat(f"{self.root}/{name}")
        return FileInfo(name=name, size=found.st_size, modified=found.st_mtime)

    def exists(self, name: str) -> bool:
        return os.path.isfile(f"{self.root}/{name}")

    def identity(self, name: str) -> Identity:
        place = f"{self.root}/{name}"
        found = os.stat(place)
        return os.path.abspath(place), found.st_size, found.st_mtime_ns, found.st_ino

    def names(self, folder: str) -> Sequence[str]:
        return os.listdir(f"{self.root}/{folder}")

    def listing(self, folder: str = "", *, after: str = "") -> list[FileInfo]:
        found = self._below(folder.rstrip("/"))
        return [info for info in found if info.name > after] if after else [*found]

    def _below(self, folder: str) -> Iterator[FileInfo]:
        with suppress(FileNotFoundError), os.scandir(f"{self.root}/{folder}") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(name)
                else:
                    with suppress(FileNotFoundError):  # it went meanwhile
                        found = entry.stat()
                        yield FileInfo(name=name, size=found.st_size, modified=found.st_mtime)

    def folders(self) -> list[FileInfo]:
        found: list[FileInfo] = []
        with suppress(FileNotFoundError), os.scandir(self.root) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it went meanwhile
                    if entry.is_dir():
                        found.append(FileInfo(name=entry.name, size=0, modified=entry.stat().st_mtime))
        return found

    def write(self, name: str, fill: Callable[[pa.NativeFile], object]) -> int:
        place = f"{self.root}/{name}"
        folder = os.path.dirname(name)
        if folder:
            with suppress(FileExistsError):
                os.mkdir(f"{self.root}/{folder}")
        with _local().open_output_stream(place) as out:
            fill(out)
            return int(out.tell())

    def make_folder(self, folder: str) -> None:
        os.mkdir(f"{self.root}/{folder}")

    def begin(self, folder: str) -> None:
        os.makedirs(f"{self.root}/{folder}")

    def take(self, other: str, names: Iterable[str]) -> None:
        for name in names:
            _link(f"{other}/{name}", f"{self.root}/{name}")

    @contextmanager
    def hold(self, folder: str) -> Iterator[Held]:
        place = f"{self.root}/{folder}"
        number = os.open(place, os.O_RDONLY)
        try:
            yield _HeldDirectory(place, number)
        finally:
            os.close(number)

    def move(self, name: str, to: str) -> None:
        os.makedirs(os.path.dirname(f"{self.root}/{to}"), exist_ok=True)
        os.rename(f"{self.root}/{name}", f"{self.root}/{to}")

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(f"{self.root}/{name}")

    def delete_folder(self, folder: str = "") -> None:
        place = f"{self.root}/{folder}".rstrip("/")
        shutil.rmtree(place, ignore_errors=True)  # others may delete it too
        if os.path.lexists(place):
            raise OSError(f"{place!r} could not be deleted")

    def drop_empty_folders(self, *, but: str) -> None:
        for place, _, _ in os.walk(self.root, topdown=False):
            if place != self.root and not f"{place}/".startswith(f"{self.root}/{but}/"):
                with suppress(OSError):  # there is something in it
                    os.rmdir(place)


def _link(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with suppress(FileExistsError):
        try:
            os.link(source, target)
        except OSError as problem:
            if isinstance(problem, FileExistsError | FileNotFoundError):
                raise
            shutil.copyfile(source, target)


@lru_cache(maxsize=1)
def _local() -> Any:
    """Arrow's way to files, loaded by whoever reads rows: listing needs none of it."""
    from pyarrow import fs

    return fs.LocalFileSystem()


def files_of(path: str) -> Files:
    """The files of a table, or of a place with tables in it."""
    if path.startswith("hdfs://"):
        from penstock.storage.hdfs_files import HdfsFiles

        return HdfsFiles(path)
    if is_store(path):
        from penstock.storage.object_store import StoreFiles

        return StoreFiles.at(path)
    return LocalFiles(path)
