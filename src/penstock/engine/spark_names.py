"""Making views known in Spark's catalog, so that others read them by name: exactly their columns, and none of ours.

That is somebody else's place: it can be away, and it cannot be part of our transactions. So what is written there is
noted before and after (``CatalogNames``), what could not be done stays to be done, and nothing is touched that is not
of this warehouse.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256

from pyspark.sql import SparkSession
from sqlglot import exp

from penstock import points
from penstock.catalog import ViewRecord, World
from penstock.catalog.alerts import Episode
from penstock.catalog.catalog_names import CatalogName, CatalogNames
from penstock.catalog.leases import Leases
from penstock.catalog.published import PUBLISH, SPARK_CATALOG
from penstock.engine.catalog_names import (
    WantedName,
    pending,
    untried,
    wanted_name,
    wanted_names,
)
from penstock.engine.properties import PUBLISH_AS
from penstock.engine.workplace import Workplace
from penstock.errors import AlreadyExistsError, DefinitionError, NotFoundError, PenstockError
from penstock.frames.spark.problems import LOST_PROBLEMS, SPARK_PROBLEMS, spark_errors
from penstock.sql.dialect import SparkSql, quoted
from penstock.sql.names import part, parts_of, quoted_parts
from penstock.storage.delta_log import is_table
from penstock.storage.locations import location
from penstock.vocabulary import AlertKind

_PROBLEMS: tuple[type[Exception], ...] = (PenstockError, *SPARK_PROBLEMS, *LOST_PROBLEMS)
_OWNER = "penstock.owner"
"""The property that tells whose a view of Spark's is."""
_LEASE = "__catalog_names"
"""What is leased by whoever writes names: one at a time, so that an older definition does not follow a newer one."""
_AGAIN = 60.0
"""Seconds until a refresh tries again what has failed."""
_LOOKS = 5
"""How often definitions that change meanwhile are followed."""


class SparkNames:
    def __init__(self, work: Workplace):
        self._work = work
        self._records = CatalogNames(work.catalog)
        self._settled: Mapping[str, WantedName] | None = None
        """What was found to be there as it should be, and nothing else to go; None until it is."""
        self._again = 0.0
        """When what has failed is tried again."""

    # -- before a definition changes ----------------------------------------------------------------------------------

    def check(self, world: World, view: ViewRecord) -> None:
        """Refuse a view whose name cannot be had, before anything is done; ``world`` has it already."""
        wanted = wanted_name(world, view)
        if wanted is None:
            return
        known = self._records.all().get(wanted.key)
        if known is None or known.digest != wanted.digest or known.view != view.key:
            self._check(world, wanted)

    def change_setting(self, name: str, value: str) -> list[str]:
        """Change a setting that says where all views are known; gives what could not be done."""
        world = self._work.catalog.world()
        trial = replace(world, settings={**world.settings, name: value})
        for view in trial.views.values():
            self.check(trial, view)
        self._work.catalog.set_setting(name, value)
        self.settle()
        return [one.problem for one in self._records.all().values() if one.problem is not None]

    def _check(self, world: World, wanted: WantedName) -> None:
        view, session = wanted.view, self._work.session()
        about = f"view {view.name!r} cannot be known as {wanted.shown} in Spark's catalog"
        first = wanted_names(world)[wanted.key].view
        if first.key != view.key:
            raise AlreadyExistsError(f"{about}: view {first.name!r} is. Choose another name.")
        if wanted.shows_state:
            raise DefinitionError(
                f"{about}: as a table it would show the state that Penstock keeps in columns of its own. Keep that "
                "beside it, TBLPROPERTIES ('penstock.state' = 'beside'), or make it a view of Spark's, "
                f"'{PUBLISH_AS}' = 'view'."
            )
        if _is_forgotten(session, wanted.parts[0]) and not self._work.spark.given:
            raise DefinitionError(
                f"{about}: the embedded Spark forgets its catalog when the process ends, and nobody else sees it. "
                "Give it the team's metastore: spark.sql.catalogImplementation hive in spark-defaults.conf, in the "
                "directory that SPARK_CONF_DIR names. Or pass on a session that has it: penstock.connect(path, "
                "spark=session). "
                f"Or leave the name out: TBLPROPERTIES ('{PUBLISH}' = 'false')."
            )
        catalog, schema, _ = wanted.parts
        if not _has_schema(session, catalog, schema):
            raise NotFoundError(
                f"{about}: there is no schema {part(schema)} in a catalog {part(catalog)} of this Spark session. Make "
                f"it in Spark, CREATE SCHEMA {part(catalog)}.{part(schema)}, or choose another name."
            )
        self._check_free(session, wanted, about)

    def _check_free(self, session: SparkSession, wanted: WantedName, about: str) -> None:
        found = _Found.at(session, wanted.parts)
        if found is not None and not self._is_ours(found):
            whose = f" of the warehouse {found.warehouse!r}" if found.warehouse else ""
            raise AlreadyExistsError(
                f"{about}: there is a {found.kind}{whose} of that name already, and it stays as it is. Choose another "
                "name, or drop it in Spark."
            )

    # -- after it -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Bring Spark's catalog to what the views say, waiting for whoever else does. What fails is noted."""
        world = self._work.catalog.world()
        with self._nothing_undone():
            if any(self._left(world)):
                with Leases(self._work.catalog, [_LEASE], self._work.patience(world, "publishing names")):
                    self._settle()

    def settle_late(self, world: World) -> None:
        """The same after a refresh, of what was left undone. Spark is not started for it twice, nor anybody waited for.

        ``world``: as the refresh saw it, which most often is enough to know that there is nothing to do.
        """
        with self._nothing_undone():
            if self._is_settled(wanted_names(world)):
                return
            names, gone = self._left(self._work.catalog.world())
            again = self._work.spark.started and time.monotonic() >= self._again
            if (names or gone) and (again or untried(names, gone, self._records.all())):
                with Leases(self._work.catalog, [_LEASE]) as held:
                    if not held:
                        self._settle()

    def _is_settled(self, wanted: Mapping[str, WantedName]) -> bool:
        """Whether nothing is to be done, as far as this process knows; once, what others have left is looked at."""
        if self._settled is None and not wanted and not self._records.all():
            self._settled = wanted
        return wanted == self._settled

    @contextmanager
    def _nothing_undone(self) -> Iterator[None]:
        """What was defined or refreshed stands, whatever becomes of its name, which is tried again later."""
        try:
            yield
        except _PROBLEMS as problem:
            self._work.tell(f"names in Spark's catalog are not as they should be yet: {problem}")

    def _left(self, world: World, failed: Collection[str] = ()) -> tuple[list[WantedName], list[CatalogName]]:
        """The names that can be written now, and those that are to go."""
        wanted, known = wanted_names(world), self._records.all()
        names, gone = pending(wanted, known, self._application()) if wanted or known else ([], [])
        self._settled = wanted if not names and not gone else None
        ready = [name for name in names if name.key not in failed and _is_ready(world, name)]
        return ready, [name for name in gone if name.key not in failed]

    def _settle(self) -> None:
        """Until there is nothing to do: definitions may change meanwhile. What fails is not tried again here."""
        failed: set[str] = set()
        for _ in range(_LOOKS):
            names, gone = self._left(self._work.catalog.world(), failed)
            if not names and not gone:
                break
            for record in gone:
                self._attempt(record, None, failed)
            for name in names:
                self._attempt(name.record(), name, failed)
        self._again = time.monotonic() + _AGAIN
        self._tell_failures()

    def _attempt(self, record: CatalogName, wanted: WantedName | None, failed: set[str]) -> None:
        session, before = self._work.session(), self._records.all().get(record.key, record)
        points.reached(points.NAMING)
        try:
            if wanted is None:
                self._take_away(session, before)
                self._records.forget(record.key)
                return
            self._check(self._work.catalog.world(), wanted)
            self._records.begin(record)
            points.reached(points.NAMING)
            self._write(session, wanted)
            forgotten = _is_forgotten(session, wanted.parts[0])
            self._records.end(record.key, wanted.digest, self._application() if forgotten else None)
        except PenstockError as problem:
            failed.add(record.key)
            self._records.fail(before, None if wanted is None else wanted.digest, str(problem))
            self._work.tell(str(problem))

    def _tell_failures(self) -> None:
        """Alerts of views that are not known as they should be, and no longer of those that are."""
        world, known = self._work.catalog.world(), self._records.all()
        raised: dict[Episode, str] = {
            (name.view, AlertKind.NOT_PUBLISHED): name.problem
            for name in known.values()
            if name.problem is not None and name.view in world.views
        }
        going_on = {each for each in self._work.catalog.open_alerts() if each[1] == AlertKind.NOT_PUBLISHED}
        if raised or going_on:
            self._work.catalog.change_alerts(raised, going_on - raised.keys())

    def problems(self, view: str) -> list[str]:
        """What keeps a view, or a name that it had, from being as it should be in Spark's catalog."""
        return [name.problem for name in self._records.all().values() if name.view == view and name.problem is not None]

    # -- what is there ------------------------------------------------------------------------------------------------

    def _write(self, session: SparkSession, wanted: WantedName) -> None:
        with spark_errors(f"view {wanted.view.name!r} cannot be made known as {wanted.shown}"):
            if not wanted.as_table:
                self._take_other(session, wanted, "VIEW")
                session.sql(_view_text(wanted, self._work.path, self._owner))
                return
            self._take_other(session, wanted, None)
            session.sql(f"CREATE TABLE {wanted.sql} USING delta LOCATION {_text(wanted.path)}")

    def _take_other(self, session: SparkSession, wanted: WantedName, kept: str | None) -> None:
        """Take away what is of the other kind, or all without one: a table is made anew, to have other columns."""
        found = _Found.at(session, wanted.parts)
        if found is not None and (kept is None or found.kind != kept.lower()):
            session.sql(f"DROP {'VIEW' if found.kind == 'view' else 'TABLE'} {wanted.sql}")

    def _take_away(self, session: SparkSession, record: CatalogName) -> None:
        """Take a name away that is still ours. One that somebody else has put something under is theirs."""
        parts = parts_of(record.name)
        name, (catalog, schema, _) = ".".join(map(part, parts)), parts
        with spark_errors(f"the name {name} cannot be taken out of Spark's catalog"):
            if record.application not in (None, self._application()):
                return
            elsewhere = record.digest is not None and record.application is None and _is_forgotten(session, catalog)
            if elsewhere or not (_has_schema(session, catalog, schema) or _has_catalog(session, catalog)):
                raise NotFoundError(
                    f"the name {name} is to go from Spark's catalog, and this Spark session has another one. A session "
                    "that has it takes it away, with the next CREATE, DROP or SET publish in it."
                )
            found = _Found.at(session, parts)
            if found is not None and self._is_ours(found):
                session.sql(f"DROP {'VIEW' if found.kind == 'view' else 'TABLE'} {quoted_parts(parts)}")

    @property
    def _owner(self) -> str:
        """This warehouse, in a word that Spark does not take for a secret to be hidden."""
        return sha256(self._work.path.encode()).hexdigest()[:16]

    def _is_ours(self, found: _Found) -> bool:
        if found.kind == "view":
            return found.owner == self._owner
        inside = f"{self._work.path.rstrip('/')}/views/"
        return found.place is not None and found.place.startswith(inside)

    def _application(self) -> str | None:
        """The caller's Spark, whose catalog may go with it. In the embedded one nothing is written that would."""
        return self._work.session().conf.get("spark.app.id", None) if self._work.spark.given else None


class _Found:
    """What has a name in Spark's catalog: its kind, whose it is if it is a view, and where it lies if it is a table."""

    def __init__(self, told: dict[str, str]):
        self._told = told
        self.kind = "view" if told.get("Type", "").upper() == "VIEW" else "table"
        properties = dict(pair.partition("=")[::2] for pair in told.get("Table Properties", "").strip("[]").split(","))
        self._properties = {name.strip(): value for name, value in properties.items()}

    @classmethod
    def at(cls, session: SparkSession, parts: Sequence[str]) -> _Found | None:
        name = quoted_parts(parts)
        with spark_errors(f"{'.'.join(map(part, parts))} of Spark's catalog cannot be looked at"):
            if not session.catalog.tableExists(name):
                return None
            rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        names = [row["col_name"] for row in rows]
        begin = next((place for place, name in enumerate(names) if name.startswith("# Detailed")), 0)
        return cls({row["col_name"]: row["data_type"] for row in rows[begin:]})

    @property
    def owner(self) -> str | None:
        return self._properties.get(_OWNER)

    @property
    def warehouse(self) -> str | None:
        return self._properties.get("penstock.warehouse")

    @property
    def place(self) -> str | None:
        told = self._told.get("Location")
        with suppress(PenstockError):
            return location(told, "a table") if told else None
        return None


def _is_ready(world: World, name: WantedName) -> bool:
    """Whether there is something to be found under it: a view that was never filled has no table yet."""
    return world.nodes[name.view.key].version is not None or is_table(name.path)


def _is_forgotten(session: SparkSession, catalog: str) -> bool:
    """Whether a catalog goes with the Spark application."""
    in_memory = session.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
    return catalog.lower() == SPARK_CATALOG and in_memory


def _has_schema(session: SparkSession, catalog: str, schema: str) -> bool:
    try:
        return session.catalog.databaseExists(quoted_parts([catalog, schema]))
    except SPARK_PROBLEMS:  # no such catalog
        return False


def _has_catalog(session: SparkSession, catalog: str) -> bool:
    return any(found.name.lower() == catalog.lower() for found in session.catalog.listCatalogs())


def _view_text(wanted: WantedName, warehouse: str, owner: str) -> str:
    """The statement that makes a view of Spark's over the files of a view, with its comments."""

    def said(comment: str | None) -> str:
        return f" COMMENT {_text(comment)}" if comment else ""

    shown = ", ".join(quoted(name) + said(comment) for name, comment in wanted.columns)
    selected = ", ".join(quoted(name) for name, _ in wanted.columns)
    about = {_OWNER: owner, "penstock.view": wanted.view.name, "penstock.warehouse": warehouse}
    properties = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in about.items())
    return (
        f"CREATE OR REPLACE VIEW {wanted.sql} ({shown}){said(wanted.view.comment)} TBLPROPERTIES ({properties}) "
        f"AS SELECT {selected} FROM delta.{quoted_parts([wanted.path])}"
    )


def _text(text: str) -> str:
    """A text as Spark SQL, in which no setting of a session is put in for ${..}.

    >>> print(_text("it's ${HOME}"))
    'it\\'s \\u0024{HOME}'
    """
    return exp.Literal.string(text).sql(dialect=SparkSql).replace("${", "\\u0024{")
