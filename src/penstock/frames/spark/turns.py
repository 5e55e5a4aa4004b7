"""Taking turns with a session's settings: it has one value of each for all of its threads.

Those who compute under equal settings do so at once, those of other settings after them; and when the last is through,
the session has its own settings again. A turn may begin before there is a session: it gets the settings when it starts.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from penstock.frames.settings import DEFAULTS, STORED, USUAL, Own, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.frames.spark.session import SparkOnDemand

_OF_TABLES = "spark.databricks.delta.properties.defaults."
_LOOKED_AT, _OURS = ("spark.sql.", _OF_TABLES), "spark.sql.codegen."
"""Settings that may change a row or a new table; ours are switched to and fro by small queries (``interpreted``), and
change none."""


class Turns:
    """Who is computing: how many, under which settings, and what the session had of what was changed for them."""

    def __init__(self) -> None:
        self._through = Condition()
        self._running = 0
        self._settings = USUAL
        self._known: Own | None = None
        self._changed: SparkSession | None = None
        """The session that has the settings of those who are computing."""
        self._before: dict[str, str | None] = {}
        self._unknown: set[str] = set()
        self._seen: tuple[dict[str, str], Own] | None = None
        self._ignored: tuple[SparkSession, Any] | None = None
        """The names of settings that are not looked at, as a classic session has them."""

    def own(self, spark: SparkOnDemand) -> Own:
        """The session's own settings, also while others are in force. One that has not started has the usual ones."""
        if not spark.started:
            return Own(USUAL, {})
        session = spark.session()
        with self._through:
            self._through.wait_for(lambda: not self._before)
            return self._read(session)

    def begin(self, spark: SparkOnDemand, wanted: Settings, own: Own | None = None) -> None:
        with self._through:
            self._through.wait_for(lambda: self._running == 0 or self._settings == wanted)
            self._settings, self._known = wanted, own
            self._running += 1
            try:
                if spark.started:
                    self.meet(spark.session())
            except BaseException:
                self.end()
                raise

    def meet(self, session: SparkSession) -> None:
        """Here is a session, maybe for the first time: it gets the settings of those who are computing."""
        with self._through:
            if self._running and self._changed is not session:
                self._before, self._changed = {}, session
                self._change(session, self._known or self._read(session))

    def end(self) -> None:
        with self._through:
            self._running -= 1
            if self._running == 0:
                try:
                    self._put_back()
                finally:
                    self._through.notify_all()

    def _change(self, session: SparkSession, own: Own) -> None:
        wanted = self._settings
        names = [] if wanted == own.settings else [name for name in DEFAULTS if wanted[name] != own.settings[name]]
        for name, value in {**{name: wanted[name] for name in names}, **own.files}.items():
            self._before[name] = session.conf.get(name, None)
            session.conf.set(name, value)

    def _put_back(self) -> None:
        before, self._before = self._before, {}  # nobody waits for a session that is gone
        session, self._changed = self._changed, None
        if session is None or not before:
            return
        from penstock.frames.spark.problems import LOST_PROBLEMS  # late: who only shows settings needs no Spark

        with suppress(*LOST_PROBLEMS):  # a session whose JVM has ended has no settings
            for name, value in before.items():
                session.conf.unset(name) if value is None else session.conf.set(name, value)

    def _read(self, session: SparkSession) -> Own:
        """What the session has. One question tells whether anything was set since; if so, each value is asked for."""
        named = self._set(session).items()
        given = {n: value for n, value in named if n.startswith(_LOOKED_AT) and not n.startswith(_OURS)}
        if self._seen is None or self._seen[0] != given:
            values = {name: self._value(session, name) for name in (*DEFAULTS, *STORED)}
            known = {name: value for name, value in values.items() if value is not None}
            self._seen = given, Own.of(known, any(name.startswith(_OF_TABLES) for name in given))
        return self._seen[1]

    def _set(self, session: SparkSession) -> dict[str, str]:
        """What was set for a session, at least of what is looked at.

        PySpark asks a classic one for each name and each value. Here it gives one text, and that a short one: an
        answer of more than 8 KB, such as one with the paths of all jars, takes 40 ms more (Nagle's algorithm).
        """
        from penstock.frames.spark.session import over_connect  # late: a way to a session has its turns

        if over_connect(session):
            return dict(session.conf.getAll)
        if self._ignored is None or self._ignored[0] is not session:
            names = [name for name in session.conf.getAll if not name.startswith(_LOOKED_AT)]
            jvm: Any = session._jvm
            self._ignored = session, jvm.PythonUtils.toSeq(names)
        text: str = session._jsparkSession.conf().getAll().removedAll(self._ignored[1]).mkString("\0")
        pairs = (entry.partition(" -> ") for entry in text.split("\0"))
        return {name: value for name, _, value in pairs}

    def _value(self, session: SparkSession, name: str) -> str | None:
        """A setting's value; None where this Spark does not know it."""
        from pyspark.errors import PySparkException  # late: who only shows settings needs no Spark

        if name in self._unknown:
            return None
        try:
            return session.conf.get(name)
        except PySparkException:
            self._unknown.add(name)
            return None


_turns: WeakKeyDictionary[SparkSession, Turns] = WeakKeyDictionary()
_opening = Lock()


def turns_of(session: SparkSession, made: Turns | None = None) -> Turns:
    """The turns of a session that runs; ``made``: those that were taken before it did."""
    with _opening:
        return _turns.setdefault(session, made or Turns())
