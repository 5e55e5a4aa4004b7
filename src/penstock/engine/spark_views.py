"""Views of Spark's catalogs that views here read: whether they are still defined as they were when one last looked.

One looks where Spark runs. An embedded one that does not is not started for it: without a metastore its catalog would
be empty, and with one it is seen later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.catalog import PlainView, World
from penstock.catalog.plain_views import PlainRecords
from penstock.engine.adopting import Adopting
from penstock.engine.relations import read_keys
from penstock.engine.spark_catalog import definition
from penstock.engine.workplace import Outdated, Workplace
from penstock.engine.writing_out import in_definition, plain_views_of
from penstock.errors import BusyError, NotFoundError, PenstockError
from penstock.frames.settings import Settings
from penstock.frames.spark.problems import spark_errors
from penstock.sql.names import parts_of

_IN_MEMORY = "in-memory"


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What was found of the views of Spark's that some views read."""

    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The views that are planned by an older definition, and what of Spark's they read."""
    failing: Mapping[str, PenstockError] = field(default_factory=dict)
    """The views that read one which is gone, or can no longer be followed."""
    reads: Collection[str] = ()
    """The tables and views that are to be read from now on."""


NOTHING = Looked()


class SparkViews:
    def __init__(self, work: Workplace):
        self._work = work
        self._seen: set[str] = set()
        """Those that this process has found in the catalog."""

    def look(self, world: World, keys: Iterable[str]) -> Looked:
        """Look at all that these views read. ``Outdated`` if one was replaced: that is kept now."""
        if not any(view.catalog_name is not None for view in world.plain.values()):
            return NOTHING
        texts = {key: world.views[key].written for key in keys if key in world.views}
        read = {key: found for key, text in texts.items() if text and (found := _of_spark(world, text))}
        broken = self._broken(world, {one for found in read.values() for one in found}) if read else {}
        replaced, failing, reads = {}, {}, set[str]()
        for key, found in read.items():
            problem = next((broken[one] for one in found if one in broken), None)
            if problem is not None:
                failing[key] = problem
                continue
            new = _read_now(world, key)
            if new is not None:
                replaced[key] = tuple(str(world.plain[one].catalog_name) for one in found)
                reads |= new
        return Looked(replaced=replaced, failing=failing, reads=reads)

    def check(self, world: World, query: str) -> None:
        """A view is made by the definitions of now: ``Outdated`` if one was replaced, its error if one is gone."""
        for problem in self._broken(world, _of_spark(world, query)).values():
            raise problem

    def _broken(self, world: World, plain: Iterable[str]) -> dict[str, PenstockError]:
        """Those that cannot be followed, with the reason."""
        if not self._work.spark.started:
            return {}
        found, changed = {}, False
        for key in sorted(plain):
            try:
                changed |= self._is_replaced(world, world.plain[key])
            except PenstockError as problem:
                found[key] = problem
        if changed:
            raise Outdated
        return found

    def _is_replaced(self, world: World, view: PlainView) -> bool:
        """Whether a view has another definition than the one that is kept; then it is kept."""
        name, session = str(view.catalog_name), self._work.session()
        with spark_errors(f"view {name!r} of Spark's catalog cannot be looked at"):
            told = definition(session, parts_of(name))
        if told is None:
            if name not in self._seen and session.conf.get("spark.sql.catalogImplementation") == _IN_MEMORY:
                return False  # it was in the memory of another process
            raise NotFoundError(
                f"view {name!r} of Spark's catalog is gone. Create it there again and refresh again, or replace what "
                f"reads it: SHOW CREATE VIEW {view.name} prints the definition that it had. If the name is that of a "
                f"table now, DROP VIEW {view.name} makes it mean that."
            )
        self._seen.add(name)
        adopted = Adopting(self._work).followed(world, told)
        if adopted.query == view.query and told.settings_here(session) == dict(view.settings):
            return False
        new = replace(told.as_plain(session, view.name, adopted.query), created_at=view.created_at)
        try:
            PlainRecords(self._work.catalog).put(new, view)
        except BusyError:  # another process has looked, too
            raise Outdated from None
        self._work.tell(f"view {name} of Spark's catalog was replaced; what reads it is planned again")
        return True


def _of_spark(world: World, text: str) -> list[str]:
    """The views of Spark's that a query reads, directly or through plain views."""
    pending, found = list(plain_views_of(world, text)), list[str]()
    while pending:
        plain = pending.pop()
        if plain not in found:
            found.append(plain)
            pending += plain_views_of(world, world.plain[plain].query)
    return [plain for plain in found if world.plain[plain].catalog_name is not None]


def _read_now(world: World, key: str) -> set[str] | None:
    """What a view reads by the definitions of now; None if it is planned by these."""
    view = world.views[key]
    settings = Settings.of(world.nodes[key].details.settings)
    try:
        text = in_definition(world, str(view.written), settings, view.name)
        return None if text == view.query else set(read_keys(world, text))
    except PenstockError:  # which is said when it is planned
        return set()
