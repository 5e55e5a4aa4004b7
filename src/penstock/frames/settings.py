"""The Spark settings that decide what a query means. They are part of a view, as its text is.

A session has one value of each for all of its threads. So a view's rows are computed in turns: those of one set of
settings at once, those of another after them; and when the last is through, the session has its own settings again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from penstock.errors import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.frames.spark.session import Spark

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
_PRECISION_LOSS = "spark.sql.decimalOperations.allowPrecisionLoss"

DEFAULTS = {
    ZONE: "UTC",
    ANSI: "true",
    _PRECISION_LOSS: "true",
    # how the text is read
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.legacy.bangEqualsNot": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    # what its names refer to
    "spark.sql.caseSensitive": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.functionResolution.sessionOrder": "second",
    # types
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.integerGroupingId": "false",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.lpadRpadAlwaysReturnString": "false",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    # values
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.legacy.allowNullComparisonResultInArraySort": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.legacy.codingErrorAction": "false",
    "spark.sql.legacy.collationAwareHashFunctions": "false",
    "spark.sql.legacy.disableMapKeyNormalization": "false",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    "spark.sql.legacy.fromDayTimeString.enabled": "false",
    "spark.sql.legacy.groupingIdWithAppendedUserGroupBy": "false",
    "spark.sql.legacy.javaCharsets": "false",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.legacy.negativeIndexInArrayInsert": "false",
    "spark.sql.legacy.noCharPaddingInPredicate": "false",
    "spark.sql.legacy.percentileDiscCalculation": "false",
    "spark.sql.legacy.scalarSubqueryCountBugBehavior": "false",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.truncateForEmptyRegexSplit": "false",
}
"""What a query's meaning depends on, with the values of the embedded session. They stand here and are not asked of
Spark, so that a later Spark with other defaults does not change a view."""

UNREADABLE = ("spark.sql.parser.escapedStringLiterals", "spark.sql.parser.quotedRegexColumnNames")
"""Under these our own queries would be read in another way, too: no view is made while they are switched on."""

_NOT_HERE = {
    "spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.caseSensitive", "spark.sql.timestampType",
    "spark.sql.legacy.allowNegativeScaleOfDecimal", "spark.sql.legacy.consecutiveStringLiterals.enabled",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate", "spark.sql.legacy.interval.enabled",
    "spark.sql.legacy.literal.pickMinimumPrecision", "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
}  # fmt: skip
"""Under other values of these, expressions are left to Spark. The zone, ANSI and precision are known to the rules that
depend on them; the rest touches nothing that the driver computes."""

_STORED = {
    "spark.sql.parquet.outputTimestampType": ("TIMESTAMP_MICROS", "INT96"),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("CORRECTED",),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("CORRECTED",),
    "spark.sql.parquet.int96RebaseModeInRead": ("CORRECTED",),
    "spark.sql.parquet.int96RebaseModeInWrite": ("CORRECTED",),
}
"""How times get into files and out again: with any other value, rows would change on the way. The first is applied."""


@dataclass(frozen=True)
class Settings:
    """Those of a view, or of a session: what is not as in ``DEFAULTS``."""

    changed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Settings:
        found = {name: _canonical(name, value) for name, value in values.items() if name in DEFAULTS}
        return cls(tuple(sorted((n, v) for n, v in found.items() if v != DEFAULTS[n])))

    @classmethod
    def recorded(cls, details: Mapping[str, Any]) -> Settings:
        """Those in a node's details. Before they were recorded, all views were taken to be made as in ``DEFAULTS``."""
        return cls.of(details.get("settings", {}))

    def recorded_in(self, details: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**details, "settings": dict(self.changed)} if self.changed else details

    def __getitem__(self, name: str) -> str:
        return dict(self.changed).get(name, DEFAULTS[name])

    @property
    def text(self) -> str:
        """Tells the settings from others; nothing for the defaults."""
        return json.dumps(self.changed) if self.changed else ""

    @property
    def shown(self) -> dict[str, str]:
        """What a reader wants to know: the zone and ANSI in any case."""
        return {ZONE: self[ZONE], ANSI: self[ANSI], **dict(self.changed)}

    def unlike(self, other: Settings) -> list[str]:
        """Where these are not the other ones, in words."""
        names = [name for name in DEFAULTS if self[name] != other[name]]
        return [f"{name} = {self[name]} (this session: {other[name]})" for name in names]

    @cached_property
    def utc(self) -> bool:
        """Whether hours and days are those of UTC."""
        return self[ZONE] in ("UTC", "Z", "GMT", "Etc/GMT")

    @cached_property
    def precision_loss(self) -> bool:
        """Whether decimals that need too many digits lose some behind the point, as in the SQL standard."""
        return self[_PRECISION_LOSS] == "true"

    @cached_property
    def here(self) -> bool:
        """Whether the driver computes expressions under them."""
        return not any(name in _NOT_HERE for name, _ in self.changed)


USUAL = Settings()


def _canonical(name: str, value: str) -> str:
    default = DEFAULTS[name]
    if name == ZONE:
        return "UTC" if value == "Etc/UTC" else value
    if default in ("true", "false"):
        return value.strip().lower()
    return value.upper() if default.isupper() else value


def check_readable(view: str, settings: Settings) -> None:
    """Refuse settings under which our own queries would be read in another way."""
    for name in UNREADABLE:
        if settings[name] != DEFAULTS[name]:
            raise DefinitionError(
                f"view {view!r} cannot be created while {name} is {settings[name]}, which changes how every query is "
                f"read. Set it to {DEFAULTS[name]} for the session and write the query without it."
            )


_in_force: ContextVar[Settings | None] = ContextVar("settings", default=None)


@dataclass(frozen=True)
class Own:
    """A session's own settings, and which of how it reads and writes files must be another for us, by name."""

    settings: Settings
    files: Mapping[str, str]


def in_force(spark: Spark) -> Settings:
    """The settings that the rows at hand are computed under: those of a view, or else the session's own."""
    return _in_force.get() or own(spark.session()).settings


def own(spark: SparkSession) -> Own:
    """The session's own settings, also while views are computed under others. They are read one by one: a few ms."""
    return _turns_of(spark).own(spark)


@contextmanager
def under(spark: SparkSession, wanted: Settings, session: Own) -> Iterator[None]:
    """Compute under these settings; ``session``: the session's own. It has them again when the last one is through."""
    turns = _turns_of(spark)
    turns.begin(spark, wanted, session)
    token = _in_force.set(wanted)
    try:
        yield
    finally:
        _in_force.reset(token)
        turns.end(spark)


class _Turns:
    """Who is computing: how many, under which settings, and what the session had of what was changed for them."""

    def __init__(self) -> None:
        self._through = Condition()
        self._running = 0
        self._settings = USUAL
        self._before: dict[str, str | None] = {}
        self._unknown: set[str] = set()

    def own(self, spark: SparkSession) -> Own:
        with self._through:
            self._through.wait_for(lambda: not self._before)
            values = {name: self._value(spark, name) for name in (*DEFAULTS, *_STORED)}
        known = {name: value for name, value in values.items() if value is not None}
        files = {name: kept[0] for name, kept in _STORED.items() if known.get(name, kept[0]).upper() not in kept}
        return Own(Settings.of(known), files)

    def begin(self, spark: SparkSession, wanted: Settings, session: Own) -> None:
        with self._through:
            self._through.wait_for(lambda: self._running == 0 or self._settings == wanted)
            if self._running == 0:
                try:
                    self._change(spark, wanted, session)
                except BaseException:
                    self._put_back(spark)
                    raise
            self._settings = wanted
            self._running += 1

    def end(self, spark: SparkSession) -> None:
        with self._through:
            self._running -= 1
            if self._running == 0:
                try:
                    self._put_back(spark)
                finally:
                    self._through.notify_all()

    def _change(self, spark: SparkSession, wanted: Settings, session: Own) -> None:
        names = [] if wanted == session.settings else [n for n in DEFAULTS if wanted[n] != session.settings[n]]
        for name, value in {**{name: wanted[name] for name in names}, **session.files}.items():
            self._before[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)

    def _put_back(self, spark: SparkSession) -> None:
        before, self._before = self._before, {}  # nobody waits for a session that is gone
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)

    def _value(self, spark: SparkSession, name: str) -> str | None:
        """A setting's value; None where this Spark does not know it."""
        from pyspark.errors import PySparkException  # late: who only shows settings needs no Spark

        if name in self._unknown:
            return None
        try:
            return spark.conf.get(name)
        except PySparkException:
            self._unknown.add(name)
            return None


_turns: WeakKeyDictionary[SparkSession, _Turns] = WeakKeyDictionary()
_opening = Lock()


def _turns_of(spark: SparkSession) -> _Turns:
    with _opening:
        return _turns.setdefault(spark, _Turns())
