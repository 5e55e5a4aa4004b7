"""Nodes that are maintained partition by partition: what changed touches some keys, and their rows are made anew.

delta:  f(R.post by K) - the stored rows of K,   where K are the keys in dR

The stored rows are what was computed before, so nothing is computed twice, and a function that breaks ties in its own
way does not have to break them in the same way again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.expressions.types import has_floats
from penstock.frames.arrow.groups import Groups, can_tell_apart, consolidated, to_remove, whole
from penstock.frames.arrow.tables import loosened
from penstock.frames.frame import Frame, NotHere
from penstock.frames.mismatch import check_removed
from penstock.frames.names import LOCATED, WEIGHT
from penstock.frames.zset import REMOVED, Delta, add, weighted
from penstock.ivm.context import Context, Stored
from penstock.ivm.touched import Touched
from penstock.plan.nodes import NodePlan
from penstock.sql.trees import Named, column, columns, tree, whole_number


@dataclass(frozen=True)
class Keyed:
    """The columns of a node's table: what the reader sees, and the keys, under names that begin with ``__`` if unseen.

    ``keys`` are pairs of internal name and name in the table; ``state`` are columns that the table has besides.
    """

    node: NodePlan
    keys: tuple[tuple[str, str], ...]
    state: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: NodePlan, names: Sequence[str]) -> Keyed:
        shown = {e.name: visible for visible, e in reversed(node.outputs) if isinstance(e, exp.Column)}
        return cls(node, tuple((name, shown.get(name, f"__key{i}")) for i, name in enumerate(names)))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.keys]

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """In the order of the table, which an aggregate's state tells."""
        visible = [name for name, _ in self.node.outputs]
        return tuple(dict.fromkeys([*visible, *self.state, *(stored for _, stored in self.keys)]))

    @property
    def stored_keys(self) -> dict[str, str]:
        """Of each key its name in the table, and the internal one."""
        return {stored: name for name, stored in self.keys}

    @cached_property
    def _outputs(self) -> list[Named]:
        found = dict(self.node.outputs)
        for name, stored in self.keys:
            found.setdefault(stored, column(name))
        return [(name, found[name]) for name in self.stored]

    def project(self, frame: Frame) -> Frame:
        """The table's columns from those of the node's operator."""
        return frame.select(self._outputs)

    def under_keys(self, table: Frame) -> Frame:
        """The table with its keys under their internal names too."""
        return table.select([*columns(table.columns), *((name, column(stored)) for name, stored in self.keys)])


def replaced(
    keyed: Keyed, context: Context, stored: Stored, groups: Touched | None, anew: Frame,
    change_below: Delta | None = None,
) -> Frame:  # fmt: skip
    """The change of the table when these groups' rows (all without) become others; maybe with the places of what goes.

    ``change_below``, if given, is the change of what they are made of: a group that it removes from must be stored.
    """
    beside: Sequence[str] = ()
    if groups is None:
        table = stored.read()
        old = keyed.under_keys(table)
    else:
        stored = holding(stored, groups, keyed.stored_keys)
        if groups.few and stored.worth_locating and stored.expected <= limits.LOCATED_ROWS:
            beside = LOCATED
        table = stored.read(located=bool(beside))
        old = groups.of(keyed.under_keys(table))
    checked = change_below is None or change_below.append_only or _check_stored(keyed, change_below, old)
    size = table.size + anew.size
    before = weighted(old.only([*keyed.stored, *beside]), -1)
    new = anew.select([*columns(anew.columns), *((name, exp.Null()) for name in beside)]) if beside else anew
    change = add([before, weighted(new, 1)]).consolidated(beside)
    if not checked and change_below is not None:
        change = change.union(_lost(keyed, change_below, old, change))
    few = stored.expected <= limits.NEARBY_ROWS and anew.size.in_one_task if groups is None else groups.few
    return context.keep(change.expecting(size.guess() if few else change.size))


def holding(stored: Stored, groups: Touched, names: dict[str, str]) -> Stored:
    """The table without what cannot be of the groups; ``names``: of the table, and which of the keys each is."""
    if groups.table is not None:
        return stored.near(groups.table, names)
    within = stored.within(groups.reach, names)
    return within.looked_up(groups.known, names) or within


def _check_stored(keyed: Keyed, change: Delta, old: Frame) -> bool:
    """A group that loses a row was there, so it must be among the ``old`` rows. False if that is Spark's to tell."""
    below, here = change.frame.rows(), old.rows()
    if below is None or here is None or not _told_apart(below, keyed.names):
        return False
    try:
        net = consolidated(loosened(below), WEIGHT)
    except NotHere:
        return False
    removed = net.filter(pc.less(net.column(WEIGHT), 0))
    if not keyed.names:
        check_removed(min(removed.num_rows, 1), min(removed.num_rows, here.num_rows, 1))
    elif removed.num_rows:
        groups = removed.take(pa.array(Groups([whole(removed.column(c)) for c in keyed.names], 0).first))
        times = np.ones(groups.num_rows, np.int64)
        found = to_remove(loosened(here.select(keyed.names)), groups, keyed.names, times)
        check_removed(groups.num_rows, int(found.sum()))
    return True


_REMOVED, _THERE = "__removed", "__there"


def _lost(keyed: Keyed, change: Delta, old: Frame, shape: Frame) -> Frame:
    """The same within the query: no rows, of the columns of the change, or the mismatch when it is computed."""
    one, none = whole_number(1), whole_number(0)
    removed = change.frame.consolidated().where(REMOVED)
    going = removed.select([*columns(keyed.names), (_REMOVED, one), (_THERE, none)])
    here = old.select([*columns(keyed.names), (_REMOVED, none), (_THERE, one)])
    groups = going.union(here).group(
        keyed.names, [(name, tree(f"COALESCE(MAX({name}), 0L)")) for name in (_REMOVED, _THERE)]
    )
    sound = groups.sound(tree(f"{_REMOVED} = 0 OR {_THERE} = 1"), "a group that loses a row is not stored")
    # Spark cannot know that no number is below zero, so it asks all of them.
    return sound.where(tree(f"{_REMOVED} < 0")).with_nulls(shape, shape.columns).only(shape.columns)


def _told_apart(rows: pa.Table, names: Sequence[str]) -> bool:
    """Whether groups by these columns are told apart here as Spark does: 0.0 and -0.0 are one group there."""
    types = [rows.schema.field(name).type for name in names]
    return all(can_tell_apart(kind) and not has_floats(kind) for kind in types)
