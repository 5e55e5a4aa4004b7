"""MERGE of a few rows on the driver, with Delta's meaning: of several clauses, the first that a row meets is done.

A row of the table that several rows of the source match is Delta's to judge,
unless nothing can come of it, or only DELETE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.catalog import TableRecord
from penstock.engine.assignment import Target, Values
from penstock.engine.query_here import read_query
from penstock.engine.seen import Scope, Seen, is_default, only, resolved, rows_where
from penstock.engine.small_changes import places_of, true_rows
from penstock.engine.sought import Wanted, comparable, conjuncts
from penstock.engine.written_values import written_columns
from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere
from penstock.frames.keys import Place, Sought
from penstock.frames.names import LOCATED
from penstock.sql.trees import column
from penstock.storage.row_change import RowChange

_MINE, _THEIRS = "__mine", "__theirs"
"""Numbers of the rows of the table, and of the source."""


def merged(tree: exp.Merge, table: TableRecord, seen: Seen) -> RowChange:
    """What a MERGE changes."""
    only(tree, "this", "using", "on", "whens")
    only(tree.this, "this", "alias", "db", "catalog")
    if any(is_default(word) for word in tree.find_all(exp.Column, exp.Var)):
        raise NotHere("DEFAULT in a MERGE")
    return _Merge(tree, Target(seen, seen.table(table), marking=True), seen).change()


@dataclass(frozen=True)
class _Clause:
    """WHEN .. THEN: what becomes of rows that meet the condition. Without ``values`` they are deleted."""

    condition: exp.Expr | None
    values: Values | None


@dataclass(frozen=True)
class _Merge:
    tree: exp.Merge
    target: Target
    seen: Seen

    def change(self) -> RowChange:
        pairs = self._pairs
        removing = self._clauses(matched=True, source=False)
        met = _numbers(pairs, _MINE)
        left = self._clauses(matched=False, source=True)
        if len(np.unique(met)) < len(met):
            if removing != [_Clause(None, None)] and (removing or left):
                raise NotHere("several rows of the source match one row of the table")
            pairs = _once(pairs)
        parts = list(_chosen(pairs, removing))
        if left:
            parts += _chosen(_without(self._mine, _MINE, met), left)
        deleted = [self._stored(rows) for rows, clause in parts if clause.values is None]
        updated = [
            (self._stored(rows), self._written(rows, clause)) for rows, clause in parts if clause.values is not None
        ]
        touched = [number for rows, _ in parts for number in _numbers(rows, _MINE).tolist()]
        return RowChange(
            table=self.target.table,
            operation="MERGE",
            gone=places_of(self.target, _with(self._mine, _MINE, touched)),
            deleted=_together(deleted),
            before=_together([old for old, _ in updated]),
            after=_together([new for _, new in updated]),
            inserted=self._inserted(),
        )

    def _inserted(self) -> pa.Table | None:
        """What is made of the rows of the source that match none of the table."""
        clauses = self._clauses(matched=False, source=False)
        alone = _without(self._theirs, _THEIRS, _numbers(self._pairs, _THEIRS))
        return _together([self.target.written(rows, clause.values or {}) for rows, clause in _chosen(alone, clauses)])

    def _written(self, rows: ArrowFrame, clause: _Clause) -> pa.Table:
        kept = dict(zip(self.target.fields, self._own.columns.values(), strict=True))
        return self.target.written(rows, clause.values or {}, kept)

    def _stored(self, rows: ArrowFrame) -> pa.Table:
        """Rows of the table as they are, without what stands beside them."""
        found = rows.table.select(list(self._own.columns.values()))
        return found.rename_columns([field.name for field in self.target.fields.values()])

    # -- what the statement says --------------------------------------------------------------------------------------

    @cached_property
    def _own(self) -> Scope:
        return Scope.of(self.tree.this, self.target.names, "t")

    @cached_property
    def _source(self) -> tuple[Scope, ArrowFrame]:
        """The source, with numbered columns."""
        using = self.tree.args["using"]
        alias = using.args.get("alias")
        named = [part.name for part in alias.args.get("columns") or ()] if alias is not None else []
        if isinstance(using, exp.Values):
            rows = [list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in using.expressions]
            columns = written_columns(rows, self.seen.settings)
            names = [f"col{place + 1}" for place in range(len(columns))]
            frame = ArrowFrame.of(self.seen.spark, pa.table(columns, names=_numbered("s", names)))
        else:
            if not isinstance(using, exp.Table | exp.Subquery):
                raise NotHere("a source that only Spark reads")
            only(using, "this", "alias", "db", "catalog")
            query = using.this if isinstance(using, exp.Subquery) else exp.select("*").from_(using.copy())
            answer = read_query(query, self.seen)
            names = named or answer.sure_names()
            frame = ArrowFrame.of(self.seen.spark, answer.rows.table.rename_columns(_numbered("s", answer.names)))
        if named and len(named) != len(frame.columns):
            raise NotHere("names for another number of columns")
        if frame.table.num_rows > limits.LOCAL_ROWS:
            raise NotHere(f"more than {limits.LOCAL_ROWS:,} rows of the source")
        return Scope.of(using, named or names, "s"), _counted(frame, _THEIRS)

    def _clauses(self, *, matched: bool, source: bool) -> list[_Clause]:
        """The clauses of one kind, in order."""
        found = []
        for when in self.tree.args["whens"].expressions:
            only(when, "matched", "source", "condition", "then")
            if bool(when.args.get("matched")) == matched and bool(when.args.get("source")) == source:
                scopes = self._scopes(matched=matched, source=source)
                condition = when.args.get("condition")
                condition = None if condition is None else resolved(condition, scopes)
                found.append(_Clause(condition, self._values(when.args["then"], scopes)))
        if any(clause.condition is None for clause in found[:-1]):
            raise NotHere("a clause behind one that all rows meet")
        return found

    def _scopes(self, *, matched: bool, source: bool) -> list[Scope]:
        """What an expression of a clause may speak of."""
        theirs = self._source[0]
        return [self._own, theirs] if matched else [self._own] if source else [theirs]

    def _values(self, then: exp.Expr, scopes: Sequence[Scope]) -> Values | None:
        match then:
            case exp.Var() if then.name.upper() == "DELETE":
                return None
            case exp.Update(expressions=[exp.Star()]) | exp.Insert(this=exp.Star()):
                only(then, "expressions", "this")
                return self._by_name()
            case exp.Update() if all(isinstance(pair, exp.EQ) for pair in then.expressions):
                only(then, "expressions")
                pairs = [(pair.this, pair.expression) for pair in then.expressions]
                return self.target.assigned(pairs, self._own.name, scopes)
            case exp.Insert(this=exp.Tuple() as names, expression=exp.Tuple() as values):
                only(then, "this", "expression")
                if not all(isinstance(name, exp.Column) and not name.table for name in names.expressions):
                    raise NotHere("INSERT of more than plain columns")
                return self.target.inserted([name.name for name in names.expressions], values.expressions, scopes)
        raise NotHere("a clause that only Spark reads")

    def _by_name(self) -> Values:
        """All columns of the table, from those of the source that are called the same."""
        theirs = self._source[0].columns
        if not set(self.target.fields) <= set(theirs):
            raise NotHere("columns that the source does not have")
        return {name: column(theirs[name]) for name in self.target.fields}

    # -- the rows -----------------------------------------------------------------------------------------------------

    @property
    def _theirs(self) -> ArrowFrame:
        return self._source[1]

    @cached_property
    def _condition(self) -> exp.Expr:
        return resolved(self.tree.args["on"], [self._own, self._source[0]])

    @cached_property
    def _mine(self) -> ArrowFrame:
        """The rows of the table that may match, with their places; all of them if those that do not are asked for."""
        every = any(when.args.get("source") for when in self.tree.args["whens"].expressions)
        keys = None if every else self._keys()
        rows = rows_where(self.seen, self.target.table, None if keys is None else Wanted(keys, {})).table
        return _counted(
            ArrowFrame.of(self.seen.spark, rows.rename_columns([*self._own.columns.values(), *LOCATED])), _MINE
        )

    def _keys(self) -> Sought | None:
        """What the rows of the source want to be equal to columns of the table."""
        plain = dict(zip(self._own.columns.values(), self.target.fields.values(), strict=True))
        found: dict[str, pa.Array] = {}
        for part in conjuncts(self._condition):
            if not isinstance(part, exp.EQ):
                continue
            for mine, theirs in ((part.left, part.right), (part.right, part.left)):
                field = plain.get(mine.name) if isinstance(mine, exp.Column) else None
                asked = {name.name for name in theirs.find_all(exp.Column)}
                if field is not None and asked and asked <= set(self._theirs.columns):
                    values = comparable(self._theirs.value_of(theirs), field.dataType)
                    if values is not None:
                        found.setdefault(field.name, values)
        if not found:
            return None
        keys = pa.table(found).drop_null()
        keys = keys.group_by(list(found)).aggregate([]).combine_chunks()
        return Sought(keys, {name: Place(name) for name in found})

    @cached_property
    def _pairs(self) -> ArrowFrame:
        """Each row of the table beside each row of the source that it matches."""
        if not self._mine.table.num_rows or not self._theirs.table.num_rows:
            self._check_condition()
        found = self._mine.join(self._theirs, list(conjuncts(self._condition)), "inner")
        if not isinstance(found, ArrowFrame) or found.rows() is None:
            raise NotHere("a condition that only Spark compares by")
        return found

    def _check_condition(self) -> None:
        """Without rows, a join asks nothing of its condition. Spark judges it all the same."""
        empty = {**_empty(self._mine), **_empty(self._theirs)}
        true_rows(ArrowFrame.of(self.seen.spark, pa.table(empty)), self._condition)


def _empty(rows: ArrowFrame) -> dict[str, pa.Array]:
    return {field.name: pa.array([], field.type) for field in rows.schema}


def _chosen(rows: ArrowFrame, clauses: Sequence[_Clause]) -> Iterator[tuple[ArrowFrame, _Clause]]:
    """For each clause the rows that meet it and none before it."""
    for clause in clauses:
        met, rows = true_rows(rows, clause.condition or exp.Boolean(this=True))
        yield met, clause


def _with(rows: ArrowFrame, number: str, those: Sequence[int] | Numbers) -> ArrowFrame:
    """The rows that have one of these numbers."""
    return rows.kept(pa.array(np.isin(_numbers(rows, number), those)))


def _without(rows: ArrowFrame, number: str, those: Sequence[int] | Numbers) -> ArrowFrame:
    return rows.kept(pa.array(~np.isin(_numbers(rows, number), those)))


def _once(pairs: ArrowFrame) -> ArrowFrame:
    """One pair of each row of the table."""
    kept = np.zeros(pairs.table.num_rows, np.bool_)
    kept[np.unique(_numbers(pairs, _MINE), return_index=True)[1]] = True
    return pairs.kept(pa.array(kept))


def _numbers(rows: ArrowFrame, number: str) -> Numbers:
    return np.asarray(rows.table.column(number).to_numpy())


def _counted(rows: ArrowFrame, number: str) -> ArrowFrame:
    return rows.made({**rows.batch.columns, number: pa.array(np.arange(rows.table.num_rows))})


def _numbered(prefix: str, names: Sequence[str]) -> list[str]:
    return [f"{prefix}{place}" for place in range(len(names))]


def _together(parts: Sequence[pa.Table]) -> pa.Table | None:
    """Rows of several clauses; none if there are no rows."""
    there = [part for part in parts if part.num_rows]
    return pa.concat_tables(there) if there else None
