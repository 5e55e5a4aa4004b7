"""The clauses of a materialized view, before AS or after the query, and finding where the query ends.

A clause begins with a pair of words that no query ends with; the tail of the text is a list of clauses only if all of
it reads as clauses, so a column called ``refresh`` does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.errors import SqlError
from penstock.sql.calendar import check_cron
from penstock.sql.cursor import Cursor
from penstock.sql.intervals import LONGEST, MICROSECONDS, microseconds
from penstock.sql.lexer import unquote
from penstock.sql.query import check_query
from penstock.sql.statements import AFTER_WATERMARK, DOWNSTREAM, PERIODICALLY, USUAL, Options, Watermark
from penstock.sql.triggers import Trigger
from penstock.vocabulary import Policy, When

_STARTS = (
    ("REFRESH", "POLICY"), ("REFRESH", "MANUAL"), ("REFRESH", "ON"), ("REFRESH", "IMMEDIATE"), ("REFRESH", "EVERY"),
    ("REFRESH", "CRON"), ("REFRESH", "INCREMENTAL"), ("SCHEDULE", "EVERY"), ("SCHEDULE", "CRON"),
    ("SCHEDULE", "REFRESH"), ("TRIGGER", "ON"), ("PRIORITY",), ("TBLPROPERTIES",), ("COMMENT",), ("PARTITIONED", "BY"),
    ("TARGET", "LAG"), ("EMIT", "AFTER"), ("EMIT", "ON"), ("EMIT", "PERIODICALLY"), ("EMIT", "NEVER"),
    ("EMIT", "ALWAYS"), ("EMIT", "CHANGES"), ("EMIT", "FINAL"), ("ALLOW", "LATENESS"), ("CONSISTENCY", "ATOMIC"),
    ("CONSISTENCY", "NONE"), ("SCHEDULE", "POLICY"), ("BUCKETS",), ("WITH", "NO", "DATA"), ("CASCADE",),
)  # fmt: skip


_EMIT = "AFTER WATERMARK, ON UPDATE or PERIODICALLY INTERVAL .."
_CHOICES = {"EMIT": f": choose one of {_EMIT}"}


@dataclass(kw_only=True)
class Clauses:
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    partition: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    trigger: Trigger | None = None
    policy: Policy | None = None
    initialize: bool = True
    buckets: int | None = None
    options: Options = USUAL
    cascade: bool = False
    seen: set[str] = field(default_factory=set)
    """What there is a clause about."""


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
            read_clauses(cursor)
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


def read_clauses(cursor: Cursor, clauses: Clauses | None = None, *, before_query: bool = False) -> Clauses:
    """Read clauses to the end of the statement, or up to AS; ``clauses`` are those that were read before."""
    clauses = clauses or Clauses()
    while cursor.token is not None and not (before_query and cursor.at("AS")):
        at = cursor.index
        what = _read_clause(cursor, clauses, before_query)
        if what in clauses.seen:
            cursor.index = at
            raise cursor.error(f"the clause {what} stands here a second time{_CHOICES.get(what, '')}")
        clauses.seen.add(what)
    return clauses


def _read_clause(cursor: Cursor, clauses: Clauses, before_query: bool = False) -> str:
    """Read one clause; gives what it is about, of which there can be one."""
    if cursor.take("REFRESH", "POLICY"):
        clauses.policy = read_policy(cursor)
        return "REFRESH POLICY"
    if cursor.at("REFRESH") or cursor.at("TRIGGER") or (cursor.at("SCHEDULE") and not cursor.at("SCHEDULE", "POLICY")):
        clauses.trigger = read_trigger(cursor)
        return "REFRESH"
    if cursor.take("WITH", "NO", "DATA"):
        clauses.initialize = False
        return "WITH NO DATA"
    if cursor.take("CASCADE"):
        clauses.cascade = True
        return "CASCADE"
    if cursor.take("TARGET", "LAG"):
        clauses.options = replace(clauses.options, lag=read_lag(cursor))
        return "TARGET LAG"
    if cursor.take("PRIORITY"):
        clauses.options = replace(clauses.options, priority=read_priority(cursor))
        return "PRIORITY"
    if cursor.take("EMIT"):
        _read_emit(cursor, clauses)
        return "EMIT"
    if cursor.take("ALLOW", "LATENESS"):
        clauses.options = replace(clauses.options, lateness=read_interval(cursor))
        return "ALLOW LATENESS"
    if cursor.take("CONSISTENCY"):
        clauses.options = replace(clauses.options, consistency=_one_of(cursor, "ATOMIC", "NONE"))
        return "CONSISTENCY"
    if cursor.take("SCHEDULE", "POLICY"):
        clauses.options = replace(clauses.options, schedule=_one_of(cursor, "FASTEST", "SLOWEST"))
        return "SCHEDULE POLICY"
    return _read_table_clause(cursor, clauses, before_query)


def _read_table_clause(cursor: Cursor, clauses: Clauses, before_query: bool) -> str:
    """A clause about the table that the view is kept in."""
    if cursor.take("COMMENT"):
        clauses.comment = cursor.string("a comment in quotes")
        return "COMMENT"
    if cursor.take("TBLPROPERTIES"):
        clauses.properties = read_properties(cursor)
        return "TBLPROPERTIES"
    if cursor.take("PARTITIONED", "BY"):
        clauses.partition = read_names(cursor)
        return "PARTITIONED BY or CLUSTER BY"
    if before_query and cursor.take("CLUSTER", "BY"):  # after a query, it is the query's
        clauses.cluster = read_names(cursor)
        return "PARTITIONED BY or CLUSTER BY"
    if cursor.take("BUCKETS"):
        clauses.buckets = cursor.integer("a number of buckets")
        if clauses.buckets == 0:
            cursor.index -= 1
            raise cursor.error("expected a number of buckets that is not 0")
        return "BUCKETS"
    raise cursor.error(
        "expected AS and a query, or a clause such as COMMENT, PARTITIONED BY, CLUSTER BY, TBLPROPERTIES or REFRESH"
        if before_query
        else "expected a clause of CREATE MATERIALIZED VIEW"
    )


def read_names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names = [cursor.name("the name of a column")]
    while cursor.take(","):
        names.append(cursor.name("the name of a column"))
    cursor.expect(")")
    return tuple(names)


def read_changed_properties(cursor: Cursor) -> tuple[tuple[str, str | None], ...]:
    """SET TBLPROPERTIES ('key' = 'value', ..), or UNSET TBLPROPERTIES ('key', ..)."""
    if cursor.take("SET"):
        cursor.expect("TBLPROPERTIES")
        return read_properties(cursor)
    cursor.expect("UNSET", "TBLPROPERTIES")
    cursor.take("IF", "EXISTS")
    cursor.expect("(")
    names = [cursor.string("a property in quotes")]
    while cursor.take(","):
        names.append(cursor.string("a property in quotes"))
    cursor.expect(")")
    return tuple((name, None) for name in names)


def read_properties(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    cursor.expect("(")
    found: list[tuple[str, str]] = []
    while True:
        token = cursor.token
        if token is not None and token.kind == "string":
            key = cursor.string()
        else:
            key = cursor.name("a property")
        cursor.take("=")
        value = cursor.token
        if value is None or value.kind not in ("string", "number", "word"):
            raise cursor.error("expected the value of the property")
        if value.kind == "string":
            found.append((key, cursor.string()))
        else:
            cursor.index += 1
            found.append((key, value.text))
        if not cursor.take(","):
            cursor.expect(")")
            return tuple(found)


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


def read_trigger(cursor: Cursor) -> Trigger:
    """REFRESH and when; or in the words of Databricks SQL: SCHEDULE [REFRESH] .., TRIGGER ON UPDATE .."""
    if cursor.take("TRIGGER", "ON", "UPDATE"):
        return Trigger(when=When.ON_COMMIT, length=_read_at_most(cursor))
    if cursor.take("SCHEDULE"):
        cursor.take("REFRESH")
        if cursor.at("EVERY") or cursor.at("CRON"):
            return read_schedule(cursor)
        raise cursor.error("expected EVERY or CRON")
    cursor.expect("REFRESH")
    if cursor.take("MANUAL"):
        return Trigger()
    if cursor.take("ON", "COMMIT") or cursor.take("INCREMENTAL"):
        return Trigger(when=When.ON_COMMIT, length=_read_at_most(cursor))
    if cursor.take("IMMEDIATE"):
        return Trigger(when=When.IMMEDIATE)
    if cursor.at("EVERY") or cursor.at("CRON"):
        return read_schedule(cursor)
    raise cursor.error("expected MANUAL, ON COMMIT, IMMEDIATE, EVERY, CRON, INCREMENTAL or POLICY")


def trigger_of(text: str) -> Trigger:
    """A trigger from what follows REFRESH, as the catalog keeps it and Python's ``refresh=`` takes it.

    >>> print(trigger_of("every 90 seconds"))
    EVERY 90 SECONDS
    """
    cursor = Cursor(f"REFRESH {text}")
    found = read_trigger(cursor)
    cursor.end()
    return found


def read_schedule(cursor: Cursor) -> Trigger:
    """EVERY n SECOND|MINUTE|HOUR|DAY|WEEK, or CRON '..' [AT TIME ZONE '..']."""
    if cursor.take("CRON"):
        cron = cursor.string("a cron expression in quotes")
        zone = cursor.string("a time zone in quotes") if cursor.take("AT", "TIME", "ZONE") else "UTC"
        check_cron(cron, zone)
        return Trigger(when=When.CRON, cron=" ".join(cron.split()), zone=zone)
    cursor.expect("EVERY")
    number = cursor.index
    count = cursor.integer() if cursor.token is not None and cursor.token.kind == "number" else 1
    unit = cursor.name(_UNITS).lower().removesuffix("s")
    if unit not in ("second", "minute", "hour", "day", "week"):
        cursor.index -= 1
        raise cursor.error(f"expected {_UNITS}")
    if not 0 < count * MICROSECONDS[unit] <= LONGEST:
        cursor.index = number
        raise cursor.error("expected a length between a second and a century; or write REFRESH ON COMMIT, or MANUAL")
    return Trigger(when=When.EVERY, length=count * MICROSECONDS[unit])


_UNITS = "SECOND, MINUTE, HOUR, DAY or WEEK"


def _read_at_most(cursor: Cursor) -> int | None:
    return read_interval(cursor) or None if cursor.take("AT", "MOST", "EVERY") else None


def read_lag(cursor: Cursor) -> int | str:
    """DOWNSTREAM, or a length in microseconds: '5 minutes'."""
    cursor.take("=")
    if cursor.take("DOWNSTREAM"):
        return DOWNSTREAM
    text = cursor.string("a lag such as '5 minutes', or DOWNSTREAM")
    length = microseconds(text)
    if not length:
        cursor.index -= 1
        raise cursor.error("expected a lag such as '5 minutes', or DOWNSTREAM")
    return length


def read_priority(cursor: Cursor) -> int:
    negative = cursor.take("-")
    rank = cursor.integer("a whole number: what has more goes first")
    return -rank if negative else rank


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
