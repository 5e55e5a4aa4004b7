"""Whether a problem is that a file is gone, whoever was reading it: Spark in some task, Arrow, or delta-rs.

Files of old versions go with a VACUUM, maybe while they are being read, so looking for them before does not suffice.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from penstock.errors import PenstockError, SourceError
from penstock.frames.spark.problems import SPARK_PROBLEMS, message_of
from penstock.storage.delta_log import HistoryGone

_GONE = re.compile(
    "FILE_NOT_EXIST|FAILED_READ_FILE.*FileNotFound|FileNotFoundException|PATH_NOT_FOUND|"
    "File does not exist|File [^ ]+ does not exist|"
    "DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_LOG_FILE_NOT_FOUND|DELTA_VERSION_NOT_FOUND|DELTA_VERSIONS_NOT_CONTIGUOUS|"
    "DELTA_CANNOT_RECONSTRUCT|DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    re.DOTALL,
)
_FILE = re.compile(r"(?:file:/{1,3}|/)[^'\"\n]*?\.(?:parquet|bin|json)")


def missing_file(problem: BaseException) -> str | None:
    """The file that is gone, or what is said of it; None for a problem of another kind."""
    if isinstance(problem, HistoryGone):
        return str(problem)
    if isinstance(problem, FileNotFoundError):
        return str(problem.filename or _named(str(problem)))
    if isinstance(problem, SPARK_PROBLEMS):
        text = message_of(problem)
        return _named(text) if _GONE.search(text) else None
    return None


def _named(text: str) -> str:
    found = _FILE.search(text)
    return text.splitlines()[0] if found is None else re.sub("^file:/+", "/", unquote(found[0]))


def lost(kind: str, name: str, problem: BaseException) -> PenstockError:
    """A file of a current version is gone: nothing can be computed from what is left."""
    if kind == "view":
        step = f"Run REFRESH MATERIALIZED VIEW {name} FULL, which writes all of it again."
    else:
        step = f"Put it back from a backup, or bring the table to a version that is whole: RESTORE TABLE {name} .."
    return SourceError(f"{kind} {name!r}: a file of its current version is gone ({missing_file(problem)}). {step}")


def lost_itself(view: str, problem: BaseException) -> PenstockError:
    """What a view has stored cannot be read: nothing can be written over it either."""
    return SourceError(
        f"view {view!r}: what it has stored cannot be read ({str(problem).rstrip('. ')}). Put its files back from a "
        f"backup, or drop it and create it again: SHOW CREATE tells how, then DROP MATERIALIZED VIEW {view}."
    )
