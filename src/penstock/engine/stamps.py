"""When each row of a read model was last written: a column of its table that is no part of the query.

A row that comes has the time of the refresh. One that stays keeps its own, also where the whole table is written anew.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from sqlglot import exp

from penstock.catalog import NodeRecord
from penstock.engine.naming import STAMP
from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.spark.session import SparkOnDemand
from penstock.sql.trees import column, columns, tree, whole_number
from penstock.storage.delta_log import Snapshot
from penstock.storage.pinned import Pinned

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NEW = "__new"


def of_change(
    node: NodeRecord, change: Frame, keys: tuple[str, ...] | None, moment: datetime
) -> tuple[Frame, tuple[str, ...] | None]:
    """A change of a node's table as it is written, and what rows are told by: not by when they were written."""
    if node.details.key is None:
        return change, keys
    told = tuple(name for name in change.columns if name != WEIGHT) if keys is None else keys
    return _stamped(change, moment), told


def of_table(node: NodeRecord, rows: Frame, spark: SparkOnDemand, base: Snapshot | None, moment: datetime) -> Frame:
    """All rows of a node's table as they are written; ``base``: what is in it, if it has the same columns."""
    if node.details.key is None:
        return rows
    if base is None or not base.rows:
        return _stamped(rows, moment)
    return restamped(rows, Pinned(spark=spark, snapshot=base, columns=(*rows.columns, STAMP)).read(), moment)


def _stamped(rows: Frame, moment: datetime) -> Frame:
    """Rows that are written now."""
    return rows.select([*columns(rows.columns), (STAMP, _at(moment))])


def restamped(rows: Frame, before: Frame, moment: datetime) -> Frame:
    """All rows of a table anew; those that were there ``before`` keep their time."""
    names = list(rows.columns)
    new = rows.select([*columns(names), (STAMP, tree("CAST(NULL AS TIMESTAMP)")), (_NEW, whole_number(1))])
    old = before.select([*columns(names), (STAMP, column(STAMP)), (_NEW, whole_number(0))])
    merged = new.union(old).group(names, [(STAMP, tree(f"MIN({STAMP})")), (_NEW, tree(f"SUM({_NEW})"))])
    here = merged.where(tree(f"{_NEW} > 0"))
    kept = (STAMP, tree("COALESCE(s, m)", s=column(STAMP), m=_at(moment)))
    return here.select([*columns(names), kept, (WEIGHT, column(_NEW))]).copies()


def _at(moment: datetime) -> exp.Expr:
    return tree("TIMESTAMP_MICROS(n)", n=whole_number((moment - _EPOCH) // timedelta(microseconds=1)))
