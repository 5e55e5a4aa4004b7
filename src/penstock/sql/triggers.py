"""When a view refreshes, as a value: REFRESH MANUAL, ON COMMIT, IMMEDIATE, EVERY .. or CRON .., and their text."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sql.intervals import described
from penstock.vocabulary import When


@dataclass(frozen=True, kw_only=True)
class Trigger:
    when: When = When.MANUAL
    length: int | None = None
    """EVERY: how often; ON COMMIT: at most so often. Microseconds."""
    cron: str | None = None
    zone: str = "UTC"
    """Whose clocks a cron expression means."""

    def __str__(self) -> str:
        """What follows REFRESH in the statement; the catalog keeps it.

        >>> print(Trigger(), Trigger(when=When.EVERY, length=300_000_000), sep=" | ")
        MANUAL | EVERY 5 MINUTES
        >>> print(Trigger(when=When.ON_COMMIT, length=60_000_000))
        ON COMMIT AT MOST EVERY INTERVAL 1 MINUTE
        >>> print(Trigger(when=When.CRON, cron="0 6 * * *", zone="Europe/Berlin"))
        CRON '0 6 * * *' AT TIME ZONE 'Europe/Berlin'
        """
        length = "" if self.length is None else described(self.length).upper()
        match self.when:
            case When.EVERY:
                return f"EVERY {length}"
            case When.ON_COMMIT if length:
                return f"ON COMMIT AT MOST EVERY INTERVAL {length}"
            case When.CRON:
                return f"CRON '{self.cron}' AT TIME ZONE '{self.zone}'"
        return str(self.when)


MANUAL = Trigger()
