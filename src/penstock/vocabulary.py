"""The words in which Penstock says what it did and why, as they stand in SQL, JSON, the catalog and the terminal.

A word is its text: it compares, prints, hashes and is stored as such, so only code knows that it is more. What is not
listed here cannot be said, and a word that is misspelt does not import.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

_W = TypeVar("_W", bound="Word")


class Word(str, Enum):
    """A text out of a fixed list. Python before and after 3.11 prints such a thing differently; here it is its text.

    >>> f"{Action.FULL}", str(Action.FULL), Action.FULL == "FULL", Action.FULL
    ('FULL', 'FULL', True, 'FULL')
    """

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]
    __repr__ = str.__repr__

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return type(self).recorded, (str(self),)  # a word of another version too can be copied and sent

    @classmethod
    def recorded(cls: type[_W], text: str) -> _W:
        """The word that somebody wrote down, who may have been another version of Penstock, with words of its own.

        >>> Reason.recorded("CHANGED") is Reason.CHANGED, Reason.recorded("OF_OLD"), "OF_OLD" in list(Reason)
        (True, 'OF_OLD', False)
        """
        known = cls._value2member_map_.get(text)
        if known is not None:
            return known  # type: ignore[return-value]
        word = str.__new__(cls, text)
        word._name_ = word._value_ = text
        return word


class Action(Word):
    """What a refresh did to a node."""

    NO_DATA = "NO_DATA"
    INCREMENTAL = "INCREMENTAL"
    FULL = "FULL"
    REINITIALIZE = "REINITIALIZE"
    SKIP = "SKIP"


class When(Word):
    """What makes a view due."""

    MANUAL = "MANUAL"
    ON_COMMIT = "ON COMMIT"
    IMMEDIATE = "IMMEDIATE"
    EVERY = "EVERY"
    CRON = "CRON"


class Fault(Word):
    """Whose fault an error of a refresh is, which says whether to try again."""

    USER = "USER"
    """The query's or its data's: it fails again until one of them changes."""
    SCHEMA = "SCHEMA"
    """A source is no longer what the query was written for."""
    SYSTEM = "SYSTEM"
    """The machine's: a full disk, a lock, the network. The next try may succeed."""


class State(Word):
    """How a view stands."""

    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    ERROR = "ERROR"


class AlertKind(Word):
    """What somebody should know of."""

    STATE_MISMATCH = "state_mismatch"
    """A view's stored rows did not fit its inputs."""
    LAG_EXCEEDED = "lag_exceeded"
    """A view is older than twice what it may get."""
    AUTO_SUSPENDED = "auto_suspended"
    """A view has failed too often in a row."""
    REINITIALIZE_NEEDED = "reinitialize_needed"
    """What became of a source cannot be followed: the view was filled anew, or waits for a person."""
    CHANGE_BACKLOG = "change_backlog"
    """More commits wait to be read than should."""
    UPSTREAM_FAILED = "upstream_failed"
    """A view waits for another one that failed."""
    FELL_BACK_TO_FULL = "fell_back_to_full"
    """A view that can be maintained was recomputed."""
    NOT_PUBLISHED = "not_published"
    """A view is not known in Spark's catalog as it should be."""


class Strategy(Word):
    """How a change was applied to a node's table."""

    APPEND = "APPEND"
    OVERWRITE = "OVERWRITE"
    REWRITE = "REWRITE"
    PATCH = "PATCH"


class Status(Word):
    """How a refresh of a view ended, or that it goes on."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class Policy(Word):
    """What a view's refreshes may do."""

    AUTO = "AUTO"
    INCREMENTAL = "INCREMENTAL"
    INCREMENTAL_STRICT = "INCREMENTAL STRICT"
    FULL = "FULL"


class Outcome(Word):
    """What came of comparing a view with its query."""

    EQUAL = "EQUAL"
    DIFFERENT = "DIFFERENT"
    NOT_VERIFIED = "NOT_VERIFIED"


class PartKind(Word):
    """What a part of a document is made of."""

    SCALAR = "scalar"
    NESTED_OBJECT = "nested_object"
    ARRAY = "array"


class Reason(Word):
    """Why a refresh did what it did, and why a view is recomputed at every change: see docs/operators.md."""

    # of a refresh
    INITIAL = "INITIAL"
    REQUESTED = "REQUESTED"
    CHANGED = "CHANGED"
    NO_CHANGE = "NO_CHANGE"
    REPLAYED = "REPLAYED"
    CHEAPER = "CHEAPER"
    TRIED_AGAIN = "TRIED_AGAIN"
    """By a way that was slower when it was last measured, which is long ago."""
    SOURCE_REPLACED = "SOURCE_REPLACED"
    HISTORY_GONE = "HISTORY_GONE"
    STATE_MISMATCH = "STATE_MISMATCH"
    SCHEMA_CHANGED = "SCHEMA_CHANGED"
    """A column that the view reads has another type, or is gone and the query holds without it."""
    VIEW_REPLACED = "VIEW_REPLACED"
    """A view of Spark's catalog that the query reads was replaced."""
    PLAN_CHANGED = "PLAN_CHANGED"
    """This version of Penstock maintains the query in another way."""
    HELD_BY_ANOTHER = "HELD_BY_ANOTHER"
    UPSTREAM_FAILED = "UPSTREAM_FAILED"
    GROUP_FAILED = "GROUP_FAILED"
    NOT_DUE = "NOT_DUE"
    LEASE_LOST = "LEASE_LOST"
    INTERRUPTED = "INTERRUPTED"
    ERROR = "ERROR"
    # of a refresh, and of a view
    POLICY_FULL = "POLICY_FULL"
    # of a view: what its query has in it
    AGGREGATE_FILTER = "AGGREGATE_FILTER"
    AGGREGATE_FUNCTION = "AGGREGATE_FUNCTION"
    CORRELATED_SUBQUERY = "CORRELATED_SUBQUERY"
    DISTINCT_AGGREGATE = "DISTINCT_AGGREGATE"
    EXPRESSION = "EXPRESSION"
    GENERATOR = "GENERATOR"
    GROUPING_SETS = "GROUPING_SETS"
    JOIN = "JOIN"
    LATERAL = "LATERAL"
    LIMIT = "LIMIT"
    NON_DETERMINISTIC = "NON_DETERMINISTIC"
    PIVOT = "PIVOT"
    PLAN_MISMATCH = "PLAN_MISMATCH"
    QUERY_FORM = "QUERY_FORM"
    RECURSIVE_CTE = "RECURSIVE_CTE"
    SCALAR_SUBQUERY = "SCALAR_SUBQUERY"
    SET_OPERATION = "SET_OPERATION"
    SOURCE_COLUMN = "SOURCE_COLUMN"
    SUBQUERY = "SUBQUERY"
    TABLE_FORM = "TABLE_FORM"
    TIME_WINDOW = "TIME_WINDOW"
    UNKNOWN_FUNCTION = "UNKNOWN_FUNCTION"
    UNRESOLVED_NAME = "UNRESOLVED_NAME"
    WINDOW_FUNCTION = "WINDOW_FUNCTION"
