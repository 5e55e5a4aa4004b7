"""What Spark says of a query that failed, in the user's words: its message without its stack.

Here alone it is known that a classic session lets Java's exceptions through where PySpark has no class for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from penstock.errors import QueryError, SparkError

SPARK_PROBLEMS: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
"""What a query can raise, in a classic session and over Spark Connect."""

LOST_PROBLEMS: tuple[type[Exception], ...] = (Py4JError, ConnectionError)
"""What is raised when the JVM has ended, whatever was asked of it."""

_JVM_LOST = "Spark's Java process has ended while it was at work: it was killed, or had too little memory. Try again"

_UNKNOWN = "the function "
_LOST = "the Spark Connect server does not answer"
_UNREACHABLE = re.compile(
    r"StatusCode\.UNAVAILABLE|failed to connect to all addresses|RETRIES_EXCEEDED|Connection refused|Socket closed"
)
_SESSION_GONE = re.compile(r"INVALID_HANDLE\.SESSION_(NOT_FOUND|CLOSED|CHANGED)")


@contextmanager
def spark_errors(what: str, names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn Spark's exceptions into ``QueryError``: its message, without the stack, and with the user's names."""
    try:
        yield
    except SPARK_PROBLEMS as problem:
        said = clean_message(problem, names or {})
        raise QueryError(said if said.startswith((_UNKNOWN, _LOST)) else f"{what}: {said}") from None
    except LOST_PROBLEMS as problem:
        if not is_lost(problem):
            raise
        raise jvm_lost(what) from problem


def jvm_lost(what: str) -> SparkError:
    """What to say when the JVM ended. Whoever needs Spark next has another one, where it is an embedded one."""
    return SparkError(f"{what}: {_JVM_LOST}; what was published stays.")


def is_lost(problem: BaseException) -> bool:
    """Whether a problem is that the JVM has ended; PySpark may stumble over it while it explains another one."""
    seen: BaseException | None = problem
    while seen is not None and not (isinstance(seen, LOST_PROBLEMS) and not isinstance(seen, Py4JJavaError)):
        seen = seen.__cause__ or seen.__context__
    return seen is not None and "Trace:" not in str(seen)  # which is how Py4J tells of a call that it does not know


def message_of(problem: BaseException) -> str:
    """Spark's own message. PySpark cannot look up the messages of Delta's errors and fails while raising them; then
    the exception that it was about to raise is further down the chain."""
    try:
        if isinstance(problem, PySparkException):
            return str(problem.getMessage() or problem)
    except Py4JError:
        pass
    original = problem
    while isinstance(original.__context__, Py4JJavaError):
        original = original.__context__
    if isinstance(original, Py4JJavaError):
        found = original.java_exception
        while found.getCause() is not None and "Exception thrown in awaitResult" in str(found.getMessage()):
            found = found.getCause()
        return str(found.getMessage() or found)
    return str(original)


def clean_message(problem: Exception, names: Mapping[str, str]) -> str:
    """The first, telling part of a Spark message."""
    text = message_of(problem)
    known = _lost(problem, text) or _unknown_function(text)
    if known is not None:
        return known
    text = re.split(r"\n\s*at |\n\s*JVM stacktrace|;\n'|\n== SQL", text)[0].strip()
    for internal, name in names.items():
        text = text.replace(internal, name)
    return _without_bypass(re.sub(r"\s*SQLSTATE: \w+\s*$", "", text)).strip()


def _without_bypass(text: str) -> str:
    """Without Spark's advice to switch its checks off: what a view means is recorded with it, so that would not help.

    >>> _without_bypass('Use try_divide. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.')
    'Use try_divide.'
    >>> _without_bypass('If necessary, set spark.x to "LEGACY" to bypass this error or set spark.y to true.')
    ''
    """
    return re.sub(r'\s*If necessary,? set "?spark\.[^\n]*?bypass this error(?: or [^\n]*)?\.?', "", text)


def _lost(problem: Exception, message: str) -> str | None:
    """What to say when it is not the query that failed, but the way to a Spark Connect server."""
    if not type(problem).__module__.endswith(".connect") and "RETRIES_EXCEEDED" not in message:
        return None
    if _SESSION_GONE.search(message):
        return (
            f"{_LOST} for this session, which it has closed. Make a new one and open the database with it: "
            "penstock.connect(path, spark=SparkSession.builder.remote(..).getOrCreate())."
        )
    if _UNREACHABLE.search(f"{message} {problem}"):
        return f"{_LOST}. Start it again, and open the database with a new session of it."
    return None


def _unknown_function(message: str) -> str | None:
    """What to say of a function that Spark does not find: it may be the user's, in another process."""
    found = re.search(r"UNRESOLVED_ROUTINE\].*?routine (`[^ ]+`)", message)
    if found is None:
        return None
    return (
        f"{_UNKNOWN}{found[1]} is not known to this Spark session. Check its name; if it is a function of yours, "
        "register it in a session (spark.udf.register) and pass that on: penstock.connect(path, spark=your_session)."
    )
