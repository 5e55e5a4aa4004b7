"""Diamonds and consistency groups: which views must advance together, and what one that fails keeps back.

A diamond is a view that reads something on two paths that share nothing in between. If one of the paths advances and
the other does not, the view mixes two moments; so all on both paths, and the view, are one group.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from penstock.graph.dag import Dag
from penstock.graph.sets import Sets

FASTEST, SLOWEST = "FASTEST", "SLOWEST"


@dataclass(frozen=True)
class Diamond:
    """``forks`` are read by ``convergence`` on two or more paths that share nothing in between."""

    convergence: str
    forks: tuple[str, ...]
    members: tuple[str, ...]
    """The views on the paths, inputs before readers, the convergence last."""


@dataclass(frozen=True)
class Group:
    """Views that advance together: those of diamonds that overlap, or a single one."""

    members: tuple[str, ...]
    """Inputs before readers."""
    convergence: tuple[str, ...] = ()
    """The views in which paths meet; none in a group of one."""


def diamonds(graph: Dag, views: Collection[str]) -> list[Diamond]:
    """The diamonds of a graph, inputs before readers. What is not among the views is a table.

    >>> graph = Dag({"totals": ["orders"], "counts": ["orders"], "averages": ["totals", "counts"]})
    >>> diamonds(graph, {"totals", "counts", "averages"})
    [Diamond(convergence='averages', forks=('orders',), members=('totals', 'counts', 'averages'))]
    """
    order = graph.order()
    place = {name: i for i, name in enumerate(order)}
    found = []
    for view in order:
        if view in views and len(graph.inputs(view)) > 1:
            diamond = _converging(graph, view, views, place)
            if diamond is not None:
                found.append(diamond)
    return found


def _converging(graph: Dag, view: str, views: Collection[str], place: Mapping[str, int]) -> Diamond | None:
    """Walks from the view towards the tables. ``branch`` is the last one before the view that all paths have in common.

    Where the readers of a relation are on different branches, it forks, and begins a branch of its own.
    """
    branch: dict[str, str] = {}
    reached: dict[str, set[str]] = {name: {name} for name in graph.inputs(view)}
    pending = [(-place[name], name) for name in reached]
    heapq.heapify(pending)
    forks: list[str] = []
    while pending:
        _, name = heapq.heappop(pending)
        if len(reached[name]) > 1:
            forks.append(name)
            branch[name] = name
        else:
            (branch[name],) = reached[name]
        if not pending:
            break  # all that is left is read through this one only
        for read in graph.inputs(name):
            if read not in reached:
                reached[read] = set()
                heapq.heappush(pending, (-place[read], read))
            reached[read].add(branch[name])
    if not forks:
        return None
    below = set(forks)
    members = []
    for name in sorted(branch, key=place.__getitem__):
        if any(read in below for read in graph.inputs(name)):
            below.add(name)
            members.append(name)
    kept = tuple(name for name in [*members, view] if name in views)
    return Diamond(view, tuple(sorted(forks, key=place.__getitem__)), kept)


def groups(graph: Dag, views: Collection[str], free: Collection[str] = ()) -> list[Group]:
    """Every view in one group: diamonds that share a member are merged, the rest stand alone.

    ``free`` are views that are published on their own (CONSISTENCY NONE): they hold nothing together, and belong to no
    group of others.
    """
    order = [name for name in graph.order() if name in views]
    sets, convergence = Sets(), []
    for diamond in diamonds(graph, views):
        members = [name for name in diamond.members if name not in free]
        if diamond.convergence in free or len(members) < 2:
            continue
        convergence.append(diamond.convergence)
        sets.join(members)
    together: dict[str, list[str]] = {}
    for name in order:
        together.setdefault(sets.of(name), []).append(name)
    meeting = set(convergence)
    return [Group(tuple(m), tuple(name for name in m if name in meeting)) for m in together.values()]


@dataclass(frozen=True)
class Withheld:
    """What is not published when views fail, beside these."""

    group: frozenset[str]
    """Members of a group in which one failed or waits for one that did."""
    downstream: frozenset[str]
    """Views that read one of those."""


def withheld(graph: Dag, among: Iterable[Group], failed: Collection[str]) -> Withheld:
    """What failed views keep back: the rest of their groups, all that reads those, and their groups in turn."""
    group_of = {name: group for group in among for name in group.members}
    kept_by_group: set[str] = set()
    downstream: set[str] = set()
    seen = set(failed)
    pending = list(failed)
    while pending:
        name = pending.pop()
        readers = {r for r in graph.readers(name) if r not in seen}
        others = {m for m in group_of[name].members if m not in seen} if name in group_of else set()
        downstream |= readers
        kept_by_group |= others - readers
        seen |= readers | others
        pending.extend(readers | others)
    return Withheld(frozenset(kept_by_group), frozenset(downstream))


def policy_of(group: Group, policies: Mapping[str, str], default: str = FASTEST) -> str:
    """When a group is due: as its convergence views say. SLOWEST wins among several."""
    said = [policies.get(name, default) for name in group.convergence]
    return SLOWEST if SLOWEST in said else FASTEST


def due(policy: str, members: Mapping[str, bool]) -> bool:
    """Whether a group is to be refreshed, given which of its members are due: any of them, or all."""
    return any(members.values()) if policy == FASTEST else all(members.values())
