"""What each epoch was: which views were due and why, what was done to each node, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.catalog import Catalog, HistoryRecord, World
from penstock.catalog.records import EpochRecord
from penstock.vocabulary import Action, Status


@dataclass(frozen=True, kw_only=True)
class EpochSummary:
    id: int
    published_at: datetime
    begun_at: datetime | None
    """When its first refresh began; None if the history does not say."""
    restored: int | None
    """The epoch of the checkpoint that it went back to, if it did."""
    run: str | None
    """The word that its commits have in their metadata."""
    sources: Mapping[str, int]
    """The versions of the tables that were read, as far as they are kept."""
    due: Mapping[str, str]
    """Why it was time for views that refresh themselves."""
    work: tuple[str, ...]
    """What was done to each view, and to the hidden nodes under it."""
    views: tuple[str, ...]
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds of all its views by phase; views side by side each count."""
    seconds: float = 0.0
    rows_inserted: int = 0
    rows_deleted: int = 0


def epochs(catalog: Catalog, limit: int | None = None, before: int | None = None) -> list[EpochSummary]:
    """What was published, newest first, as far back as the history goes."""
    world, known = catalog.world(), catalog.epochs(limit, before=before)
    did: dict[int, list[HistoryRecord]] = {}
    for record in catalog.refreshes_of(known[-1].id, known[0].id) if known else ():
        did.setdefault(record.epoch, []).append(record)
    places = {key: place for place, key in enumerate(world.views_graph().order())}
    return [_summed(world, places, epoch, own_refreshes(epoch, did.get(epoch.id, []))) for epoch in known]


def own_refreshes(epoch: EpochRecord, recorded: Iterable[HistoryRecord]) -> list[HistoryRecord]:
    """Those that published it. What failed later, or found nothing to do, was recorded with the same epoch, since there
    was no newer one."""
    return [r for r in recorded if r.started_at <= epoch.published_at]


def _summed(
    world: World, places: Mapping[str, int], epoch: EpochRecord, refreshes: list[HistoryRecord]
) -> EpochSummary:
    ordered = sorted(refreshes, key=lambda r: places.get(r.view, len(places)))
    told = [(world.display_name(r.view), r, r.details or {}) for r in ordered]
    phases: dict[str, float] = {}
    for _, _, details in told:
        for phase, seconds in details.get("phases", {}).items():
            phases[phase] = phases.get(phase, 0.0) + seconds
    return EpochSummary(
        id=epoch.id, published_at=epoch.published_at,
        begun_at=min((r.started_at for r in refreshes), default=None), restored=epoch.restored, run=epoch.run,
        sources={world.display_name(key): version for key, version in sorted(epoch.sources.items())},
        due={name: details["due"] for name, _, details in told if "due" in details},
        work=tuple(line for name, record, details in told for line in _work(name, record, details.get("nodes", ()))),
        views=tuple(dict.fromkeys(name for name, _, _ in told)), phases=phases,
        seconds=sum(r.seconds for r in ordered), rows_inserted=sum(r.rows_inserted for r in ordered),
        rows_deleted=sum(r.rows_deleted for r in ordered),
    )  # fmt: skip


def _work(name: str, record: HistoryRecord, nodes: Iterable[str]) -> Iterable[str]:
    """What was done; of a view that nothing was to be done for, nothing."""
    if record.status == Status.SUCCEEDED and record.action == Action.NO_DATA:
        return
    done = str(record.status if record.status == Status.FAILED else record.action)
    rows = f"+{record.rows_inserted:,} -{record.rows_deleted:,}"
    yield f"{name}: {done} ({record.reason}), {rows} rows, {record.seconds:.2f} s"
    yield from nodes


def listed(named: Mapping[str, object]) -> str | None:
    """
    >>> listed({"orders": 3, "regions": 1}), listed({})
    ('orders 3, regions 1', None)
    """
    return ", ".join(f"{name} {value}" for name, value in named.items()) or None


def in_words(due: Mapping[str, str]) -> str | None:
    """
    >>> in_words({"totals": "a commit to a source"})
    'totals: a commit to a source'
    """
    return "; ".join(f"{view}: {why}" for view, why in due.items()) or None


def in_phases(phases: Mapping[str, float]) -> str:
    """
    >>> in_phases({"planning": 0.1, "reading": 0.0, "computing": 1.25})
    'planning 0.10 s, computing 1.25 s'
    """
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in phases.items() if seconds >= 0.005)
