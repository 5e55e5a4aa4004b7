"""The files of a table in an object store: S3 and what speaks its language, Google's, Azure's.

Each question is a round trip, so that what was learned of files that never change is kept in memory: small files whole,
of large ones the end, where Parquet has its footer. A commit is a conditional put; a store that does not know those
loses commits, and is found out before the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EEXIST, ENOENT
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError

from penstock.errors import NotSupportedError, StoreError, WarehouseError
from penstock.frames.pace import PACE
from penstock.storage import ranges
from penstock.storage.file_cache import FILES, Identity
from penstock.storage.files import FileInfo, Held
from penstock.storage.locations import STORES, options_of, store_of

_Thing = TypeVar("_Thing")
_Found = TypeVar("_Found")

_RETRIES = 5
"""How often a request is sent again that had no answer: about three seconds."""
_WITHOUT_SUFFIXES = ("az", "abfs", "abfss")
"""Where nobody can be asked for the last bytes of a file."""


@contextmanager
def _told(doing: str, url: str) -> Iterator[None]:
    """What a store says, in one line, and without what a URL may hold besides its path."""
    try:
        yield
    except AlreadyExistsError:
        raise FileExistsError(EEXIST, "there is a file already", url) from None
    except FileNotFoundError as problem:
        if _NO_STORE.search(str(problem)):
            raise _failed(doing, url, problem) from None
        raise FileNotFoundError(ENOENT, "no such file", url) from None
    except NotImplementedError:
        raise _unconditional(f"{doing} {url!r}") from None
    except (BaseError, OSError) as problem:
        raise _failed(doing, url, problem) from None


_NO_STORE = re.compile("NoSuchBucket")
_ANSWER = re.compile(r"status code: (\d{3}[A-Za-z ]*)(?:.*?<Code>(\w+)</Code>)?", re.DOTALL)
_SILENT = re.compile(r"(?:performing|request:?) \w+ (\w+://[^/\s]+)\S* in .*error sending request", re.DOTALL)


def _failed(doing: str, url: str, problem: BaseException) -> StoreError:
    """What a store answers may repeat what it was asked with; of that only the status and its code are told."""
    text, prefix = str(problem), STORES[url.partition("://")[0]].upper()
    answer, silent = _ANSWER.search(text), _SILENT.search(text)
    if answer:
        said = f"it answers {answer[1].strip()}" + (f" ({answer[2]})" if answer[2] else "")
    else:
        said = f"there is no answer from {silent[1]}" if silent else _first_line(problem)
    return StoreError(
        f"{doing} {url!r} failed: {said}. Check the name of the store, and what opens it: storage_options, or "
        f"{prefix}.. in the environment."
    )


def _first_line(problem: BaseException) -> str:
    line = (str(problem).strip().splitlines() or [""])[0]
    return " ".join(word.partition("?")[0] if "://" in word else word for word in line.split())


@lru_cache(maxsize=64)
def _opened(store: str, options: tuple[tuple[str, str], ...]) -> Any:
    config = {name: value for name, value in options if not _is_of_client(name)}
    client: dict[str, Any] = {name: value for name, value in options if _is_of_client(name)}
    for name in ("allow_http", "allow_invalid_certificates"):
        if name in client:
            client[name] = client[name].lower() in ("true", "1", "yes")
    try:
        open_store: Any = obstore.store.from_url  # which has a type of its own for the options of each kind of store
        return open_store(store, config=config, client_options=client or None, retry_config={"max_retries": _RETRIES})
    except (BaseError, ValueError) as problem:
        raise WarehouseError(f"the store {store!r} cannot be opened: {_first_line(problem)}.") from None


def _bare(tag: str | None) -> str:
    """A tag as all answers of a store have it: Azure puts it in quotes in some, and not in others."""
    return (tag or "").strip('"')


def _is_of_client(name: str) -> bool:
    return not name.startswith(("aws_", "google_", "azure_"))


class StoreFiles:
    """The objects below a URL."""

    local = False

    def __init__(self, root: str, options: tuple[tuple[str, str], ...]):
        self.root = root
        self.opened_as = store_of(root), options
        self._store = _opened(*self.opened_as)
        self._scheme = root.partition("://")[0]
        self._beside = f"{store_of(root)}/"
        self._prefix = root.removeprefix(store_of(root)).strip("/")

    @classmethod
    def at(cls, url: str) -> StoreFiles:
        return cls(url, tuple(sorted(options_of(url).items())))

    def _key(self, name: str) -> str:
        """A log may also name files of other tables, by their URLs."""
        if name.startswith(self._beside):
            return name[len(self._beside) :]
        return f"{self._prefix}/{name}" if self._prefix and name else self._prefix or name

    def _name(self, key: str) -> str:
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def _url(self, name: str) -> str:
        return name if name.startswith(self._beside) else f"{self.root}/{name}"

    def _info(self, meta: Any) -> FileInfo:
        return FileInfo(
            name=self._name(meta["path"]), size=int(meta["size"]), modified=meta["last_modified"].timestamp(),
            tag=_bare(meta["e_tag"]) or meta["last_modified"].isoformat(),
        )  # fmt: skip

    def read(self, name: str) -> bytes:
        with _told("reading", self._url(name)):
            return bytes(obstore.get(self._store, self._key(name)).bytes())

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        return self.each(self.read, names)

    def each(self, do: Callable[[_Thing], _Found], things: Sequence[_Thing]) -> list[_Found]:
        if len(things) < 2:
            return [do(thing) for thing in things]
        with ThreadPoolExecutor(min(ranges.AT_ONCE, len(things))) as pool:
            return list(pool.map(do, things))

    def open(self, name: str) -> pa.NativeFile:
        size, tail = FILES.kept((self._url(name), "end"), lambda: self._end(name), lambda found: len(found[1]))
        return ranges.opened(lambda start, end: self.part(name, start, end), size, tail)

    def _end(self, name: str) -> tuple[int, bytes]:
        if self._scheme in _WITHOUT_SUFFIXES:
            return self._end_by_size(name)
        with _told("reading", self._url(name)):
            found = obstore.get(self._store, self._key(name), options={"range": {"suffix": ranges.TAIL}})
            return int(found.meta["size"]), bytes(found.bytes())

    def _end_by_size(self, name: str) -> tuple[int, bytes]:
        """One question more than where the end of a file can be asked for."""
        size = self.info(name).size
        start = max(size - ranges.TAIL, 0)
        return size, self.part(name, start, size) if size else b""

    def part(self, name: str, start: int, end: int) -> bytes:
        with _told("reading", self._url(name)), PACE.reading(self.opened_as[0], end - start):
            return bytes(obstore.get_range(self._store, self._key(name), start=start, end=end))

    def info(self, name: str) -> FileInfo:
        with _told("looking for", self._url(name)):
            return self._info(obstore.head(self._store, self._key(name)))

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
        prefix = self._key(folder.rstrip("/"))
        offset = self._key(after) if after else None
        with _told("listing", self._url(folder)):
            pages = obstore.list(self._store, prefix or None, offset=offset, chunk_size=1000)
            found = [self._info(meta) for page in pages for meta in page]
        return [info for info in found if info.name > after] if after else found  # some ignore the offset

    def folders(self) -> list[FileInfo]:
        with _told("listing", self.root):
            found = obstore.list_with_delimiter(self._store, self._prefix or None)["common_prefixes"]
        return [FileInfo(name=self._name(key), size=0, modified=0.0) for key in found]

    def write(self, name: str, fill: Callable[[pa.NativeFile], object]) -> int:
        buffer = pa.BufferOutputStream()
        fill(buffer)
        data = buffer.getvalue().to_pybytes()
        with _told("writing", self._url(name)):
            obstore.put(self._store, self._key(name), data)
        FILES.put((self._url(name), "end"), (len(data), data[-ranges.TAIL :]), min(len(data), ranges.TAIL))
        return len(data)

    def make_folder(self, folder: str) -> None:
        """There are no folders."""

    def begin(self, folder: str) -> None:
        """There is nothing to make."""

    def take(self, other: str, names: Iterable[str]) -> None:
        """The store copies its objects by itself."""
        source = StoreFiles(other, self.opened_as[1])
        self.each(lambda name: self._copy(source, name), list(names))

    def _copy(self, source: StoreFiles, name: str) -> None:
        with _told("copying", source._url(name)):
            obstore.copy(self._store, source._key(name), self._key(name))

    @contextmanager
    def hold(self, folder: str) -> Iterator[Held]:
        """A store has no folders. A table that is dropped leaves none, and none is ever made in its place."""
        yield _HeldPrefix(self, folder)

    def put_if_absent(self, name: str, data: bytes) -> str:
        check_conditional(self)
        return self.put_first(name, data)

    def put_first(self, name: str, data: bytes) -> str:
        with _told("writing", self._url(name)):
            made = obstore.put(self._store, self._key(name), data, mode="create", use_multipart=False)
        return _bare(made["e_tag"])

    def move(self, name: str, to: str) -> None:
        with _told("moving", self._url(name)):
            obstore.rename(self._store, self._key(name), self._key(to))

    def delete(self, names: Iterable[str]) -> None:
        keys = [self._key(name) for name in names]
        try:
            self._delete(keys)
        except FileNotFoundError:  # which some stores say, and then it is open what became of the others
            self.each(self._delete_one, keys)

    def _delete(self, keys: list[str]) -> None:
        if keys:
            with _told("deleting in", self.root):
                obstore.delete(self._store, keys)

    def _delete_one(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self._delete([key])

    def delete_folder(self, folder: str = "") -> None:
        self.delete([info.name for info in self.listing(folder)])

    def drop_empty_folders(self, *, but: str) -> None:
        """There are no folders."""


@dataclass(frozen=True)
class _HeldPrefix:
    files: StoreFiles
    folder: str

    @property
    def is_there(self) -> bool:
        return bool(self.files.listing(self.folder))

    def put_if_absent(self, name: str, data: bytes) -> str:
        return self.files.put_if_absent(f"{self.folder}/{name}", data)


_conditional: set[Any] = set()
"""The stores, by how they were opened, of which it is known that they do."""
_checking = Lock()


def check_conditional(files: StoreFiles) -> None:
    """An error for a store where a conditional put is like any other: of two commits, one would be lost.

    It is asked once in a process. Who says that they know them and does not, would not tell by itself.
    """
    with _checking:
        if files.opened_as in _conditional:
            return
        name = f"_penstock_conditional_put_{uuid4().hex}"
        try:
            files.put_first(name, b"1")
            try:
                files.put_first(name, b"2")
            except FileExistsError:
                _conditional.add(files.opened_as)
                return
        finally:
            files.delete([name])
    raise _unconditional(f"writing to {store_of(files.root)!r}")


def _unconditional(doing: str) -> NotSupportedError:
    return NotSupportedError(
        f"{doing}: this store does not refuse to overwrite a file (If-None-Match: *, or Google's "
        "x-goog-if-generation-match: 0), so that two writers could lose a commit. Use a store or a version of it that "
        "does, and do not set AWS_CONDITIONAL_PUT=disabled."
    )
