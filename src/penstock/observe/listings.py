"""What SHOW and DESCRIBE list, as columns and rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.catalog import HistoryRecord, NodeRecord, ViewRecord, World
from penstock.catalog.alerts import Alert
from penstock.catalog.checkpoints import Checkpoint
from penstock.engine.catalog_names import wanted_name
from penstock.engine.consistency import groups_of, schedule_policy
from penstock.engine.settings import SETTINGS
from penstock.engine.writing_out import outside_of
from penstock.frames.settings import Settings
from penstock.graph.watermarks import as_time
from penstock.observe.epochs import in_phases
from penstock.observe.status import ViewStatus
from penstock.observe.suggestions import suggestion
from penstock.sql.names import QualifiedName

if TYPE_CHECKING:
    import pyarrow as pa

STATEMENT = "createtab_stmt"
"""The column of SHOW CREATE, named as Spark names it."""


@dataclass(frozen=True)
class Listing:
    """Rows, and their columns as a Spark DDL string."""

    ddl: str
    rows: list[tuple[Any, ...]]

    def arrow(self) -> tuple[list[str], pa.Table]:
        """The columns' names, and the rows, whose columns are ``c0``, ``c1``, ..

        >>> Listing("name STRING, rows BIGINT", [("a", 1)]).arrow()[1].schema.types
        [DataType(string), DataType(int64)]
        """
        import pyarrow as pa  # most listings are only printed

        kinds = {
            "STRING": pa.string(), "INT": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(),
            "BOOLEAN": pa.bool_(), "TIMESTAMP": pa.timestamp("us", "UTC"), "ARRAY<STRING>": pa.list_(pa.string()),
        }  # fmt: skip
        columns = [part.rsplit(" ", 1) for part in self.ddl.split(", ")]
        values = zip(*self.rows, strict=True) if self.rows else [()] * len(columns)
        arrays = [pa.array(each, kinds[kind]) for each, (_, kind) in zip(values, columns, strict=True)]
        return [name for name, _ in columns], pa.table({f"c{i}": array for i, array in enumerate(arrays)})


def lines(column: str, text: str) -> Listing:
    return Listing(f"{column} STRING", [(line,) for line in text.splitlines()])


Wanted = Callable[[str], bool]
"""Which names are listed."""


def chosen(world: World, schema: str | None) -> Wanted:
    """The names of one schema, or all without one."""
    key = None if schema is None else world.schema(schema).key
    return lambda name: key is None or QualifiedName.read(name).schema_key == key


def schemas(world: World) -> Listing:
    """How many tables, materialized views and plain views are in each."""
    kinds = (world.tables, world.views, world.plain)
    counts = [Counter(QualifiedName.read(key).schema_key for key in kind) for kind in kinds]
    rows = [
        (schema.name, *(count[schema.key] for count in counts), schema.created_at) for schema in world.schemas.values()
    ]
    return Listing("name STRING, tables INT, materialized_views INT, views INT, created_at TIMESTAMP", rows)


def tables(world: World, wanted: Wanted) -> Listing:
    found = [table for table in world.tables.values() if wanted(table.name)]
    rows = [(t.name, "external" if t.external else "managed", t.path, t.catalog_name) for t in found]
    return Listing("name STRING, kind STRING, location STRING, catalog_name STRING", rows)


def views(statuses: Iterable[ViewStatus]) -> Listing:
    rows = [
        (v.name, v.refresh, v.policy, v.incremental, v.reason, v.last_action, v.last_status, v.last_refresh,
         v.data_time, v.behind_in_words() or None, v.location, v.state_in_words(), v.lag_in_words() or None,
         v.target_in_words() or None, v.catalog_name)
        for v in statuses
    ]  # fmt: skip
    return Listing(
        "name STRING, refresh STRING, policy STRING, incremental BOOLEAN, reason STRING, last_action STRING, "
        "last_status STRING, last_refresh TIMESTAMP, data_time TIMESTAMP, behind STRING, location STRING, "
        "state STRING, lag STRING, target_lag STRING, catalog_name STRING",
        rows,
    )


def dependencies(world: World, name: str) -> Listing:
    """Both directions: what the object reads and what reads it, directly or through others."""
    late = world.late_node(name)
    key = world.resolve(name) if late is None else late[0].key
    graph = world.views_graph()
    rows = []
    for direction, names, direct in (
        ("reads", graph.ancestors([key]), graph.inputs(key)),
        ("is read by", graph.descendants([key]), graph.readers(key)),
    ):
        for other in graph.order(names):
            kind = "view" if other in world.views else "table"
            rows.append((world.display_name(key), direction, world.display_name(other), kind, other in direct))
    for reader in [key, *graph.order(graph.ancestors([key]))]:
        rows += [(world.display_name(key), "reads", n, "table", reader == key) for n in outside_of(world, reader)]
    return Listing("name STRING, direction STRING, other STRING, kind STRING, direct BOOLEAN", rows)


def groups(world: World, epochs: Mapping[str, int]) -> Listing:
    """Views that are published together, and views that stand alone. ``epochs`` says when each changed last."""
    rows = []
    for number, group in enumerate(groups_of(world), 1):
        members, meeting = ([world.display_name(key) for key in keys] for keys in (group.members, group.convergence))
        policy = schedule_policy(world, group) if group.convergence else None
        rows.append((number, members, meeting, max(epochs.get(key, 0) for key in group.members), policy))
    ddl = "group INT, members ARRAY<STRING>, convergence ARRAY<STRING>, epoch INT, policy STRING"
    return Listing(ddl, rows)


def checkpoints(found: Iterable[Checkpoint]) -> Listing:
    rows = [(c.name, c.epoch, len(c.state["views"]), c.created_at) for c in found]
    return Listing("name STRING, epoch INT, views INT, created_at TIMESTAMP", rows)


def watermarks(world: World) -> Listing:
    """Of tables that have one, and of views; NULL while it is not known."""
    rows = []
    for key in world.views_graph().order():
        table, mark = world.tables.get(key), world.watermarks.get(key)
        if table is None or table.watermark is not None:
            kind = "view" if table is None else "table"
            defined = str(table.watermark) if table is not None else None
            rows.append((world.display_name(key), kind, defined, None if mark is None else as_time(mark.value)))
    return Listing("name STRING, kind STRING, definition STRING, watermark TIMESTAMP", rows)


def alerts(world: World, found: Iterable[Alert]) -> Listing:
    rows = [
        (a.kind, world.display_name(a.view), a.message, a.suggestion, a.epoch, a.raised_at, a.cleared_at) for a in found
    ]
    return Listing(
        "kind STRING, view STRING, message STRING, suggestion STRING, epoch INT, raised_at TIMESTAMP, "
        "cleared_at TIMESTAMP",
        rows,
    )


def settings(values: Mapping[str, str]) -> Listing:
    rows = [(name, value, SETTINGS[name].about) for name, value in values.items()]
    return Listing("name STRING, value STRING, about STRING", rows)


def history(world: World, records: Iterable[HistoryRecord]) -> Listing:
    rows = [
        (r.epoch, world.display_name(r.view), r.status, r.action, r.strategy, r.reason, r.rows_inserted, r.rows_deleted,
         round(r.seconds, 3), *_details(r), r.started_at, r.error, (r.details or {}).get("due"),
         "; ".join((r.details or {}).get("nodes", ())) or None, suggestion(r.reason),
         r.times, r.since)
        for r in records
    ]  # fmt: skip
    return Listing(
        "epoch INT, view STRING, status STRING, action STRING, strategy STRING, reason STRING, rows_inserted BIGINT, "
        "rows_deleted BIGINT, seconds DOUBLE, jobs INT, bytes_read BIGINT, bytes_written BIGINT, phases STRING, "
        "estimate STRING, started_at TIMESTAMP, error STRING, due STRING, nodes STRING, suggestion STRING, times INT, "
        "since TIMESTAMP",
        rows,
    )


def _details(record: HistoryRecord) -> tuple[int | None, int | None, int | None, str | None, str | None]:
    """What a refresh cost, in words where it is several numbers. A refresh of an older Penstock does not say."""
    known = record.details
    if known is None:
        return None, None, None, None, None
    return known["jobs"], known["bytes_read"], known["bytes_written"], in_phases(known["phases"]), estimate(known)


def estimate(details: Mapping[str, Any]) -> str | None:
    """
    >>> estimate({"estimate": {"incremental": 0.5, "full": 3.0}})
    'incremental 0.5 s, full 3.0 s'
    >>> estimate({"estimate": {"incremental": 0.5, "full": 3.0, "readers": 1.25}})
    'incremental 0.5 s, full 3.0 s and 1.2 s for its readers'
    """
    expected = details.get("estimate")
    if not expected:
        return None
    readers = f" and {expected['readers']:.1f} s for its readers" if expected.get("readers", 0.0) >= 0.05 else ""
    return f"incremental {expected['incremental']:.1f} s, full {expected['full']:.1f} s{readers}{_retry(expected)}"


def _retry(expected: Mapping[str, Any]) -> str:
    """Why a way is tried again.

    >>> _retry({"retry": {"action": "INCREMENTAL", "since": 7, "believed": 2.06}})
    '; INCREMENTAL is tried again: what was measured 7 refreshes ago (2.1 s) counts less by now'
    """
    if "retry" not in expected:
        return ""
    action, since, believed = (expected["retry"][key] for key in ("action", "since", "believed"))
    ago = "1 refresh" if since == 1 else f"{since} refreshes"
    return f"; {action} is tried again: what was measured {ago} ago ({believed:.1f} s) counts less by now"


def description(world: World, name: str, session: Settings | None = None) -> Listing:
    """Columns first, then what else is known of the view; ``session``: the settings of the session that asks."""
    late = world.late_node(name)
    if late is not None:
        return _late_description(name, *late)
    view = world.views[world.view_key(name)]
    rows: list[tuple[str, str | None, str | None]] = list(view.columns)
    rows.append(("", None, None))
    details = world.nodes[view.key].details
    placement, settings = str(details.placement), Settings.of(details.settings)
    published = wanted_name(world, view)
    facts = {
        "# Name": view.name,
        "# Query": view.written or view.query,
        "# Comment": view.comment or "",
        "# Refresh": view.refresh,
        "# Policy": view.policy,
        **({"# Options": str(view.options)} if str(view.options) else {}),
        "# Incremental": "yes" if view.incremental else f"no: {view.reason} ({view.reason_code})",
        "# Reads": ", ".join([*(world.display_name(r) for r in view.reads), *details.outside]),
        **{f"# Setting {name}": value for name, value in settings.shown.items()},
        **({"# Other here": ", ".join(settings.unlike(session))} if session not in (None, settings) else {}),
        **({"# Placement": placement} if placement else {}),
        **({"# Published": published.told} if published is not None else {}),
        "# Location": world.nodes[view.key].path,
        "# Created": view.created_at.isoformat(timespec="seconds"),
        **{f"# Property {key}": value for key, value in view.properties.items()},
    }
    rows.extend((label, value, None) for label, value in facts.items())
    return Listing("col_name STRING, data_type STRING, comment STRING", rows)


def _late_description(name: str, view: ViewRecord, node: NodeRecord) -> Listing:
    """Of the rows that came late for a view."""
    rows: list[tuple[str, str | None, str | None]] = [
        (field["name"], _type_name(field["type"]), None) for field in json.loads(node.schema_json)["fields"]
    ]
    rows.append(("", None, None))
    facts = {"# Name": name, "# Late for": view.name, "# Reads": node.inputs[0], "# Location": node.path}
    rows.extend((label, value, None) for label, value in facts.items())
    return Listing("col_name STRING, data_type STRING, comment STRING", rows)


def _type_name(kept: str | Mapping[str, Any]) -> str:
    """The name of a type as Spark's JSON has it; of one that is made of others, what it is."""
    if not isinstance(kept, str):
        return str(kept["type"])
    return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kept, kept)
