"""The clauses that may follow the query of a materialized view, and finding where the query ends.

A clause begins with a pair of words that no query ends with; the tail of the text is a list of clauses only if all of
it reads as clauses, so a column called ``refresh`` does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import NotSupportedError, SqlError
from penstock.sql.cursor import Cursor
from penstock.sql.intervals import MICROSECONDS, microseconds
from penstock.sql.lexer import unquote
from penstock.sql.query import check_query
from penstock.sql.statements import AFTER_WATERMARK, PERIODICALLY, USUAL, Options, Watermark
from penstock.vocabulary import Policy

_STARTS = (
    ("REFRESH", "POLICY"), ("REFRESH", "MANUAL"), ("REFRESH", "ON"), ("REFRESH", "IMMEDIATE"), ("REFRESH", "EVERY"),
    ("REFRESH", "CRON"), ("REFRESH", "INCREMENTAL"), ("TARGET", "LAG"), ("EMIT", "AFTER"), ("EMIT", "ON"),
    ("EMIT", "PERIODICALLY"), ("EMIT", "NEVER"), ("EMIT", "ALWAYS"), ("EMIT", "CHANGES"), ("EMIT", "FINAL"),
    ("ALLOW", "LATENESS"), ("CONSISTENCY", "ATOMIC"), ("CONSISTENCY", "NONE"),
    ("SCHEDULE", "POLICY"), ("BUCKETS",), ("WITH", "NO", "DATA"), ("CASCADE",),
)  # fmt: skip


_EMIT = "AFTER WATERMARK, ON UPDATE or PERIODICALLY INTERVAL .."
_CHOICES = {"EMIT": f": choose one of {_EMIT}"}


@dataclass(kw_only=True)
class Clauses:
    refresh: str | None = None
    policy: Policy | None = None
    initialize: bool = True
    buckets: int | None = None
    options: Options = USUAL
    cascade: bool = False


def not_yet(clause: str) -> NotSupportedError:
    return NotSupportedError(
        f"{clause} is not supported yet: leave the clause out, and call penstock refresh from cron"
    )


def find_query_end(cursor: Cursor) -> int:
    """The index of the token where the clauses begin, the query starting at the cursor."""
    base = cursor.token.depth if cursor.token else 0
    first_failure: tuple[int, SqlError] | None = None
    begin = cursor.index
    for index in range(begin + 1, len(cursor.tokens)):
        cursor.index = index
        if cursor.tokens[index].depth > base or not any(cursor.at(*start) for start in _STARTS):
            continue
        try:
            read_clauses(cursor, dry=True)
        except SqlError as failure:
            first_failure = first_failure or (index, failure)
            continue
        if first_failure is not None and not _is_query(
            cursor.text[cursor.tokens[begin].start : cursor.tokens[index].start]
        ):
            raise first_failure[1]  # the clauses began before
        cursor.index = begin
        return index
    cursor.index = begin
    if first_failure is not None and not _is_query(cursor.text[cursor.offset :]):
        raise first_failure[1]
    return len(cursor.tokens)


def _is_query(text: str) -> bool:
    try:
        check_query(text, 0, len(text))
    except SqlError:
        return False
    return True


def read_clauses(cursor: Cursor, *, dry: bool = False) -> Clauses:
    """Read clauses to the end of the statement. What is not built yet is read, then refused (unless ``dry``)."""
    clauses = Clauses()
    seen: set[str] = set()
    while cursor.token is not None:
        first = "REFRESH POLICY" if cursor.at("REFRESH", "POLICY") else cursor.token.upper
        if first in seen:
            raise cursor.error(f"the clause {first} stands here a second time{_CHOICES.get(first, '')}")
        seen.add(first)
        later = _read_clause(cursor, clauses)
        if later and not dry:
            raise not_yet(later)
    return clauses


def _read_clause(cursor: Cursor, clauses: Clauses) -> str | None:
    """Read one clause; the name of the clause when it is not supported yet."""
    if cursor.take("REFRESH", "POLICY"):
        clauses.policy = read_policy(cursor)
        return None
    if cursor.at("REFRESH"):
        clauses.refresh, later = read_trigger(cursor)
        return later
    if cursor.take("WITH", "NO", "DATA"):
        clauses.initialize = False
        return None
    if cursor.take("CASCADE"):
        clauses.cascade = True
        return None
    if cursor.take("TARGET", "LAG"):
        if not cursor.take("DOWNSTREAM"):
            cursor.string("a lag such as '5 minutes', or DOWNSTREAM")
        return "TARGET LAG"
    if cursor.take("EMIT"):
        _read_emit(cursor, clauses)
        return None
    if cursor.take("ALLOW", "LATENESS"):
        clauses.options = replace(clauses.options, lateness=read_interval(cursor))
        return None
    if cursor.take("CONSISTENCY"):
        clauses.options = replace(clauses.options, consistency=_one_of(cursor, "ATOMIC", "NONE"))
        return None
    if cursor.take("SCHEDULE", "POLICY"):
        clauses.options = replace(clauses.options, schedule=_one_of(cursor, "FASTEST", "SLOWEST"))
        return None
    if cursor.take("BUCKETS"):
        clauses.buckets = cursor.integer("a number of buckets")
        if clauses.buckets == 0:
            cursor.index -= 1
            raise cursor.error("expected a number of buckets that is not 0")
        return None
    raise cursor.error("expected a clause of CREATE MATERIALIZED VIEW")


def _one_of(cursor: Cursor, *words: str) -> str:
    for word in words:
        if cursor.take(word):
            return word
    raise cursor.error(f"expected {' or '.join(words)}")


def read_policy(cursor: Cursor) -> Policy:
    if cursor.take("INCREMENTAL", "STRICT"):
        return Policy.INCREMENTAL_STRICT
    for policy in (Policy.AUTO, Policy.INCREMENTAL, Policy.FULL):
        if cursor.take(policy):
            return policy
    raise cursor.error("expected AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL")


def read_trigger(cursor: Cursor) -> tuple[str, str | None]:
    """REFRESH and when; with the name of the clause when that trigger is not supported yet."""
    cursor.expect("REFRESH")
    if cursor.take("MANUAL"):
        return "MANUAL", None
    if cursor.take("ON", "COMMIT") or cursor.take("INCREMENTAL"):
        return "ON COMMIT", "REFRESH ON COMMIT"
    if cursor.take("IMMEDIATE"):
        return "IMMEDIATE", "REFRESH IMMEDIATE"
    if cursor.take("EVERY"):
        if cursor.token is not None and cursor.token.kind == "number":
            cursor.integer()
        unit = cursor.name("SECOND, MINUTE, HOUR or DAY").upper().removesuffix("S")
        if unit not in ("SECOND", "MINUTE", "HOUR", "DAY"):
            cursor.index -= 1
            raise cursor.error("expected SECOND, MINUTE, HOUR or DAY")
        return f"EVERY {unit}", "REFRESH EVERY"
    if cursor.take("CRON"):
        cursor.string("a cron expression")
        if cursor.take("AT", "TIME", "ZONE"):
            cursor.string("a time zone")
        return "CRON", "REFRESH CRON"
    raise cursor.error("expected MANUAL, ON COMMIT, IMMEDIATE, EVERY, CRON, INCREMENTAL or POLICY")


def _read_emit(cursor: Cursor, clauses: Clauses) -> None:
    if cursor.take("AFTER", "WATERMARK"):
        clauses.options = replace(clauses.options, emit=AFTER_WATERMARK)
        return
    if cursor.take("ON", "UPDATE"):
        return
    if cursor.take("PERIODICALLY"):
        every = read_interval(cursor)
        clauses.options = replace(clauses.options, emit=PERIODICALLY, every=every)
        return
    raise cursor.error(f"expected {_EMIT}")


def read_watermark(cursor: Cursor) -> Watermark:
    """FOR column AS column - INTERVAL .., or FOR column AS column."""
    cursor.expect("FOR")
    column = cursor.name("the name of a column")
    cursor.expect("AS")
    again = cursor.name("the name of the same column")
    if again.lower() != column.lower():
        cursor.index -= 1
        raise cursor.error(f"expected {column} and, maybe, - INTERVAL ..")
    return Watermark(column, read_interval(cursor) if cursor.take("-") else 0)


def read_interval(cursor: Cursor) -> int:
    """INTERVAL '5 seconds', INTERVAL 5 SECONDS or INTERVAL '5' SECOND, in microseconds."""
    cursor.expect("INTERVAL")
    begin = cursor.index
    words = []
    while cursor.token is not None and cursor.token.kind in ("string", "number"):
        words.append(unquote(cursor.token) if cursor.token.kind == "string" else cursor.token.text)
        cursor.index += 1
        if cursor.token is not None and cursor.token.text.lower().removesuffix("s") in MICROSECONDS:
            words.append(cursor.token.text)
            cursor.index += 1
    length = microseconds(" ".join(words))
    if length is None:
        cursor.index = begin
        raise cursor.error("expected an interval of fixed length such as '5 seconds'")
    return length
