"""The files that a log names: what their paths tell, and whether they are there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from penstock.storage.deletion_vectors import stored_at
from penstock.storage.files import files_of
from penstock.storage.locations import is_store, store_of

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def partition_of(path: str) -> dict[str, str | None]:
    """The partition that the folders of a file name.

    >>> partition_of("day=2024-05-01/region=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'day': '2024-05-01', 'region': None}
    """
    pairs = [folder.split("=", 1) for folder in path.split("/")[:-1] if "=" in folder]
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in pairs}


def name_of(file: str) -> str:
    """A file's name, as Spark tells it in ``_metadata.file_name``."""
    return unquote(file).rsplit("/", 1)[-1]


def files_exist(path: str, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the files that some actions name are there, with their deletion vectors."""
    vectors = [stored_at(dict(a["deletionVector"])) for a in actions if a.get("deletionVector")]
    files = {str(a["path"]) for a in actions} | {quote(vector) for vector in vectors if vector is not None}
    return all(files_of(path).each(lambda file: _is_there(path, file), sorted(files)))


def is_elsewhere(file: str) -> bool:
    """Whether a file of the log lies outside of its table, as those of a shallow clone do."""
    return file.startswith("/") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", file) is not None


def is_out_of_reach(root: str, file: str) -> bool:
    """Whether that is so, and it cannot be read as the files of the table are: it is not in the same store.

    >>> is_out_of_reach("s3://bucket/t", "s3://bucket/u/part-0.parquet"), is_out_of_reach("/data/t", "/data/u/part-0")
    (False, True)
    """
    return is_elsewhere(file) and not (is_store(root) and file.startswith(f"{store_of(root)}/"))


def _is_there(path: str, file: str) -> bool:
    place = unquote(file)
    if not is_elsewhere(file):
        return files_of(path).exists(place)
    folder, _, name = re.sub("^file:/+", "/", place).rpartition("/")
    return files_of(folder).exists(name)
