"""The Spark settings that decide what a query means. They are part of a view, as its text is.

A view's rows are computed with its settings in force, in turns with those of others (``spark.turns``). The rules on the
driver ask here which ones these are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.errors import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.frames.spark.session import SparkOnDemand

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
_PRECISION_LOSS = "spark.sql.decimalOperations.allowPrecisionLoss"
_SUBSTITUTE = "spark.sql.variable.substitute"

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

STORED = {
    "spark.sql.parquet.outputTimestampType": ("TIMESTAMP_MICROS", "INT96"),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("CORRECTED",),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("CORRECTED",),
    "spark.sql.parquet.int96RebaseModeInRead": ("CORRECTED",),
    "spark.sql.parquet.int96RebaseModeInWrite": ("CORRECTED",),
    # Delta's change feed and pushed filters take dates through Java objects; the old ones have no 10 October 1582.
    "spark.sql.datetime.java8API.enabled": ("TRUE",),
    _SUBSTITUTE: ("FALSE",),
}
"""What must be so for us, whatever the session has; the first value is applied. With any other, times would change on
their way into files and out again, and ``${name}`` in a text of ours, which may be a row's, would be a setting."""


@dataclass(frozen=True)
class Settings:
    """Those of a view, or of a session: what is not as in ``DEFAULTS``."""

    changed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Settings:
        found = {name: _canonical(name, value) for name, value in values.items() if name in DEFAULTS}
        return cls(tuple(sorted((n, v) for n, v in found.items() if v != DEFAULTS[n])))

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
    tables: bool = False
    """Whether it says what new Delta tables are like."""

    def replaces(self, text: str) -> bool:
        """Whether Spark would put settings into a text before it reads it."""
        return "${" in text and _SUBSTITUTE in self.files

    @classmethod
    def of(cls, values: Mapping[str, str], tables: bool) -> Own:
        found = {name: values.get(name, kept[0]).upper() for name, kept in STORED.items()}
        files = {name: kept[0] for name, kept in STORED.items() if found[name] not in kept}
        return cls(Settings.of(values), files, tables)


def in_force(spark: SparkSession | SparkOnDemand) -> Settings:
    """The settings that the rows at hand are computed under: those of a view, or else the session's own."""
    return _in_force.get() or own(spark).settings


def own(spark: SparkSession | SparkOnDemand) -> Own:
    """The session's own settings, also while views are computed under others."""
    way = _way(spark)
    return way.turns.own(way)


@contextmanager
def under(spark: SparkSession | SparkOnDemand, wanted: Settings, session: Own | None = None) -> Iterator[None]:
    """Compute under these settings. The session has its own again when the last one is through.

    Spark need not run: if it is started meanwhile, it gets the settings then. ``session``: its own, if they are known.
    """
    way = _way(spark)
    way.turns.begin(way, wanted, session)
    token = _in_force.set(wanted)
    try:
        yield
    finally:
        _in_force.reset(token)
        way.turns.end()


def _way(spark: SparkSession | SparkOnDemand) -> SparkOnDemand:
    from penstock.frames.spark.session import on_demand  # late: its turns are taken with these settings

    return on_demand(spark)
