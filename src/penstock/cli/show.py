"""``status``, ``graph``, ``history`` and ``explain``: what the catalog knows, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from penstock.cli.output import cell, fits, out, plain_table, print_json, print_table
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of
from penstock.sql.names import key_of
from penstock.vocabulary import Action, Policy, State, Status, When, Word

if TYPE_CHECKING:
    from penstock.catalog import HistoryRecord
    from penstock.observe.epochs import EpochSummary
    from penstock.observe.explain import Explanation, NodeExplanation
    from penstock.observe.graph import Graph, GraphNode
    from penstock.observe.status import ViewStatus

_W = TypeVar("_W", bound=Word)

ACTION_STYLES = {
    Action.INCREMENTAL: "green",
    Action.FULL: "yellow",
    Action.REINITIALIZE: "yellow",
    Action.NO_DATA: "dim",
    Action.SKIP: "magenta",
}
STATUS_STYLES = {
    Status.RUNNING: "cyan", Status.SUCCEEDED: "green", Status.FAILED: "bold red", Status.SKIPPED: "magenta",
}  # fmt: skip

NO_TABLES = (
    "The warehouse is empty. Begin with a table:\n"
    '  penstock sql "CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2))"'
)
NO_VIEWS = (
    "There are no materialized views yet. Create one over a table:\n"
    '  penstock sql "CREATE MATERIALIZED VIEW totals AS '
    'SELECT region, SUM(amount) AS total FROM orders GROUP BY region"'
)


def status(
    context: typer.Context, json: JsonOption = False, warehouse: WarehouseOption = None, catalog: CatalogOption = None
) -> None:
    """Show how views stand, how old they are, and what they lack.

    For each how it is maintained, and what it has not seen yet of what it reads. Of views that refresh themselves:
    when, their state, and their lag against its target, red if it is over. Below: errors, and the alerts that go
    on.
    """
    with opened(place_of(context, warehouse, catalog)) as (database, _):
        views = database.status()
        alerts = [alert for alert in database.alerts() if alert.cleared_at is None]
        names = {key_of(node.name): node.name for node in database.graph().nodes}
    if json:
        print_json([{**asdict(view), "stale": view.stale, "too_old": view.too_old} for view in views])
    elif not views:
        out().print(NO_VIEWS if names else NO_TABLES)
    else:
        table = _status_table(views, datetime.now(timezone.utc))
        if fits(table) or not any(view.refreshes_itself for view in views):
            print_table(table)
        else:
            print_table(_narrow_table(views))
            out().print(Text("A wider terminal, or --json, shows more.", style="dim"))
        _print_errors((view.name, view.last_error) for view in views)
        for alert in alerts:
            told = Text.assemble((f"{names.get(alert.view, alert.view)}, {alert.kind}: ", "yellow"), alert.message)
            out().print(told, soft_wrap=True)


def graph(
    context: typer.Context, json: JsonOption = False, warehouse: WarehouseOption = None, catalog: CatalogOption = None
) -> None:
    """Show tables and views as a tree: below each, what reads it."""
    with opened(place_of(context, warehouse, catalog)) as (database, _):
        found = database.graph()
    if json:
        print_json({"nodes": [asdict(node) for node in found.nodes], "edges": found.edges})
    elif not found.nodes:
        out().print(NO_TABLES)
    else:
        for tree in graph_trees(found):
            out().print(tree)
        if all(node.kind == "table" for node in found.nodes):
            out().print(NO_VIEWS)


def history(
    context: typer.Context,
    view: Annotated[str | None, typer.Argument(metavar="VIEW", help="Only this view.", show_default=False)] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many refreshes.")] = 20,
    costs: Annotated[
        bool, typer.Option("--costs", help="Show Spark jobs, where the time went, and why it was time.")
    ] = False,
    epochs: Annotated[
        bool, typer.Option("--epochs", help="Show epochs: what was due and why, and what was done to each node.")
    ] = False,
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Show what refreshes did, newest first."""
    with opened(place_of(context, warehouse, catalog)) as (database, _):
        if epochs:
            _print_epochs(database.epochs(limit), json=json)
            return
        records = database.history(view, limit + 1)
        names = {key_of(node.name): node.name for node in database.graph().nodes}
    shown = records[:limit]
    if json:
        print_json([{**asdict(record), "view": names.get(record.view, record.view)} for record in shown])
    elif not shown:
        out().print("Nothing was refreshed yet." if view or names else NO_TABLES)
    else:
        table = _costs_table if costs else _history_table
        print_table(table(shown, names, datetime.now(timezone.utc)))
        _print_errors((f"epoch {r.epoch}, {names.get(r.view, r.view)}", r.error) for r in shown)
        if len(records) > limit:
            out().print(Text(f"There are older refreshes: see them with --limit {limit * 5}.", style="dim"))


def explain(
    context: typer.Context,
    view: Annotated[
        str,
        typer.Argument(metavar="VIEW", help="The view, or CREATE MATERIALIZED VIEW .. in quotes.", show_default=False),
    ],
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Show how a view is maintained, or would be.

    The view, or the CREATE of one that is not there yet: its nodes, each node's rule and what it reads, whether it
    is incremental and if not, why.
    """
    with opened(place_of(context, warehouse, catalog)) as (database, progress), progress.during("planning"):
        explanation = database.explain(view)
    if json:
        print_json({**explanation.to_dict(), "verdict": explanation.verdict()})
    else:
        out().print(_explained(explanation))


def _status_table(views: Sequence[ViewStatus], now: datetime) -> Table:
    timed = any(view.refreshes_itself for view in views)
    table = plain_table(
        "view", "reads", "maintained", "last refresh", "when", "data as of", "behind",
        *(("refreshes", "state", "lag", "target") if timed else ()),
    )  # fmt: skip
    for view in views:
        how = Text("incrementally", style="green") if view.incremental else Text(f"full: {view.reason}", style="yellow")
        if view.policy not in (Policy.AUTO, Policy.FULL):
            how.append(f" ({view.policy})")
        table.add_row(
            cell(view.name, "bold"), cell(", ".join(view.reads)), how, last_refresh(view),
            cell(_ago(view.last_refresh, now)), cell(view.data_time and _clock(view.data_time, now)),
            cell(view.behind_in_words(), "yellow"), *(time_cells(view) if timed else ()),
        )  # fmt: skip
    # One word for all views is not cut where the terminal ends; a reason or a policy beside it may go on below.
    table.columns[2].no_wrap = all(view.incremental and view.policy == Policy.AUTO for view in views)
    return table


def _narrow_table(views: Sequence[ViewStatus]) -> Table:
    """What matters of views that refresh themselves, where the terminal has no place for more."""
    table = plain_table("view", "last", "state", "lag", "target", "behind")
    for view in views:
        table.add_row(
            cell(view.name, "bold"), last_refresh(view), *time_cells(view)[1:], cell(view.behind_in_words(), "yellow")
        )
    return table


def time_cells(view: ViewStatus) -> tuple[Text, Text, Text, Text]:
    """When a view refreshes, how it stands, how old it is, and how old it may get."""
    wrong = view.state not in (State.ACTIVE, State.INITIALIZING) or view.held_back_by
    return (
        cell(view.refresh if view.refresh != When.MANUAL or view.target_lag is None else "by its lag"),
        cell(view.state_in_words(), "bold red" if wrong else ""),
        cell(view.lag_in_words(), "red" if view.too_old else "green" if view.target_lag is not None else ""),
        cell(view.target_in_words()),
    )


def last_refresh(view: ViewStatus) -> Text:
    if view.last_status not in (None, Status.SUCCEEDED):
        return styled(view.last_status, STATUS_STYLES)
    if not view.populated:
        return Text("never, no rows yet", style="yellow")
    return styled(view.last_action, ACTION_STYLES)


def _history_table(records: list[HistoryRecord], names: dict[str, str], now: datetime) -> Table:
    table = plain_table(
        "epoch", "view", "started", "action", "strategy", "reason", "+rows", "-rows", "seconds",
        right=("epoch", "+rows", "-rows", "seconds"),
    )  # fmt: skip
    for record in records:
        table.add_row(
            str(record.epoch), cell(names.get(record.view, record.view), "bold"), _clock(record.started_at, now),
            did(record), cell(record.strategy), cell(record.reason),
            count(record.rows_inserted), count(record.rows_deleted), f"{record.seconds:.2f}",
        )  # fmt: skip
    return table


def did(record: HistoryRecord) -> Text:
    """What a refresh did; or that it failed, or goes on."""
    if record.status in (Status.FAILED, Status.RUNNING):
        return styled(record.status, STATUS_STYLES)
    return styled(record.action, ACTION_STYLES)


def _costs_table(records: list[HistoryRecord], names: dict[str, str], now: datetime) -> Table:
    from penstock.observe.epochs import in_phases

    table = plain_table(
        "epoch", "view", "started", "action", "seconds", "jobs", "where the time went", "due by",
        right=("epoch", "seconds", "jobs"),
    )  # fmt: skip
    for record in records:
        details = record.details or {}
        table.add_row(
            str(record.epoch), cell(names.get(record.view, record.view), "bold"), _clock(record.started_at, now),
            did(record), f"{record.seconds:.2f}", cell(details.get("jobs")),
            cell(in_phases(details.get("phases", {}))), cell(details.get("due")),
        )  # fmt: skip
    return table


def _print_epochs(found: Sequence[EpochSummary], *, json: bool) -> None:
    from penstock.observe.epochs import in_phases, in_words, listed

    if json:
        print_json([asdict(epoch) for epoch in found])
        return
    if not found:
        out().print("Nothing was published yet.")
    now = datetime.now(timezone.utc)
    for epoch in found:
        back = f", back to epoch {epoch.restored}" if epoch.restored else ""
        facts = {
            "due": in_words(epoch.due), "read": listed(epoch.sources),
            "spent": in_phases(epoch.phases),
        }  # fmt: skip
        table = Table.grid(padding=(0, 2, 0, 0))
        for line in epoch.work:
            name, _, did = line.partition(": ")
            table.add_row(Text(f"  {name}", style="bold"), Text(did, overflow="fold"))
        for label, fact in facts.items():
            if fact:
                table.add_row(Text(f"  {label}", style="dim"), Text(fact, style="dim", overflow="fold"))
        out().print(Text.assemble((f"epoch {epoch.id}", "bold cyan"), f"  {_clock(epoch.published_at, now)}{back}"))
        out().print(table)


def _print_errors(errors: Iterable[tuple[str, str | None]]) -> None:
    for name, error in dict.fromkeys(errors):  # of a view that fails again and again, once an epoch
        if error:
            out().print(Text.assemble((f"{name}: ", "bold red"), error), soft_wrap=True)


def graph_trees(found: Graph) -> list[Tree]:
    """One tree for each table (and each view that reads nothing); what has several inputs is unfolded only once."""
    nodes = {node.name: node for node in found.nodes}
    unfolded: set[str] = set()

    def grow(tree: Tree, node: GraphNode) -> None:
        unfolded.add(node.name)
        for name in node.readers:
            reader = nodes[name]
            others = [read for read in reader.reads if read != node.name]
            label = _label(reader, f"also reads {', '.join(others)}" if others else "")
            if name not in unfolded:
                grow(tree.add(label), reader)
            elif reader.readers:
                tree.add(label.append("  (its readers: see above)", style="dim"))
            else:
                tree.add(label.append("  (again)", style="dim"))

    trees = []
    for root in found.roots():
        tree = Tree(_label(root), guide_style="dim")
        grow(tree, root)
        trees.append(tree)
    return trees


def _label(node: GraphNode, remark: str = "") -> Text:
    kind = f"  {node.kind}{', IMMEDIATE' if node.immediate else ''}"
    label = Text.assemble((node.name, "bold cyan" if node.kind == "view" else "bold"), (kind, "dim"))
    if node.remark:
        wrong = node.failing or node.held_back_by
        label.append(f", {node.remark}", style="bold red" if wrong else "yellow" if node.stale else "dim")
    return label.append(f", {remark}", style="dim") if remark else label


def _explained(explanation: Explanation) -> RenderableType:
    style = "green" if explanation.incremental else "yellow"
    parts: list[RenderableType] = [Text.assemble((explanation.view, "bold"), ": ", (explanation.verdict(), style))]
    if explanation.moves:
        parts.append(Text(f"  {explanation.moves}", style="dim", overflow="fold"))
    if explanation.constructs:
        table = Table.grid(padding=(0, 2, 0, 0))
        for construct, how in explanation.constructs:
            table.add_row(Text(f"  {construct}"), Text(how, style="dim", overflow="fold"))
        parts.append(table)
    for node in explanation.nodes:
        parts += ["", *_node(node)]
    if explanation.last_refresh or explanation.advice:
        parts += ["", _last_and_next(explanation)]
    return Group(*parts)


def _last_and_next(explanation: Explanation) -> Table:
    """What the last refresh did and cost, and what could be done; a fact that is too long goes on below itself."""
    table = Table.grid(padding=(0, 2, 0, 0))
    last, *costs = (explanation.last_refresh or "").splitlines() or [""]
    facts = [("last refresh", last)] if last else []
    for line in costs:
        label, _, fact = line.strip().partition("  ")
        facts.append((f"  {label}", fact.strip()))
    for label, fact in [*facts, *(("advice", sentence) for sentence in explanation.advice)]:
        table.add_row(Text(label, style="dim"), Text(fact, overflow="fold"))
    return table


def _node(node: NodeExplanation) -> list[RenderableType]:
    rule = node.rule if node.incremental else f"{node.rule} (not incremental)"
    facts = {"computes": node.computes, "rule": rule, "reads": node.reads, "inputs": ", ".join(node.inputs) or "none"}
    if node.size():
        facts["state"] = str(node.size())
    if node.shared_with:
        facts["shared with"] = ", ".join(node.shared_with)
    table = Table.grid(padding=(0, 2, 0, 0))
    for label, fact in facts.items():
        table.add_row(Text(f"  {label}", style="dim"), Text(fact, overflow="fold"))
    kind, name = node.title()
    return [Text.assemble((kind, "dim"), " ", (name, "bold")), table]


def styled(value: _W | None, styles: Mapping[_W, str]) -> Text:
    return cell(value, "" if value is None else styles.get(value, ""))


def count(number: int) -> Text:
    """A number of rows; zero steps back."""
    return Text(f"{number:,}", style="" if number else "dim")


def _clock(moment: datetime, now: datetime) -> str:
    """A moment on the user's clock; today's without the date."""
    local, today = moment.astimezone(), now.astimezone()
    return local.strftime("%H:%M:%S" if local.date() == today.date() else "%Y-%m-%d %H:%M:%S")


def _ago(moment: datetime | None, now: datetime) -> str:
    """How long ago in one unit.

    >>> _ago(datetime(2026, 1, 1, 12, 0), datetime(2026, 1, 1, 15, 59))
    '3 h ago'
    """
    if moment is None:
        return ""
    seconds = max(int((now - moment).total_seconds()), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"
