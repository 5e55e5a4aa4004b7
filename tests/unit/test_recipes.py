"""docs/architecture.md: the way of a change is walked, recipes are followed with toys, and what is named is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.sql.types import DecimalType, IntegerType, LongType, StringType, StructField, StructType
from relations import counted
from sqlglot import exp
from trees import Maker

import penstock
from penstock.answering import Answering
from penstock.engine import cost
from penstock.errors import InternalError, SqlError
from penstock.frames import limits
from penstock.frames.arrow.expressions import values
from penstock.frames.arrow.expressions.texts import text
from penstock.frames.arrow.expressions.types import Value
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import Clock, timing
from penstock.frames.frame import Frame
from penstock.frames.mismatch import StateMismatch
from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, ZSet, totals, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.in_memory import NO_SPARK, ChangedTable, Held, Memory, NeedsSpark, without_spark
from penstock.ivm.node import maintained_node
from penstock.plan import build, split
from penstock.plan.operators import Operator, Project, Scan, mapped, walk
from penstock.sql import parser
from penstock.sql import statements as s
from penstock.sql.query import parse_query
from penstock.sql.trees import column, columns, tree
from penstock.storage import apply
from penstock.storage.appending import can_append
from penstock.storage.apply import Applied, apply_change
from penstock.storage.changes import read_change
from penstock.storage.delta_log import Snapshot
from penstock.storage.log_writer import held_log
from penstock.storage.patch import Patch, TableChange, plan_patch
from penstock.storage.pinned import Pinned
from penstock.storage.row_change import RowChange, commit
from penstock.storage.runs import Run
from penstock.storage.strategy import weighed
from penstock.storage.view_table import create_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()

# -- the page ----------------------------------------------------------------------------------------------------------


def place(path: str) -> Path:
    """Where something is that the page names: in the project, or in the package."""
    return next((root / path for root in (ROOT, ROOT / "src" / "penstock") if (root / path).exists()), ROOT / path)


def test_every_file_and_room_that_is_named_is_there() -> None:
    files = re.findall(r"(?<![\w./])(?:\w+/)*\w+\.(?:py|md|toml)\b", PAGE)
    named = {*files, *re.findall(r"`((?:\w+/)+)`", PAGE)}
    assert len(named) > 80
    assert [path for path in sorted(named) if not place(path).exists()] == []


def test_what_is_said_to_be_in_a_file_is_in_it() -> None:
    said = re.findall(r"`(?:@|\w+\.)?(\w+)` in `([\w/]+\.py)`", re.sub(r"\s+", " ", PAGE))
    assert len(said) > 20
    assert [f"{name} in {path}" for name, path in said if not re.search(rf"\b{name}\b", place(path).read_text())] == []


def test_the_picture_fits_and_every_file_stands_for_itself() -> None:
    assert max(map(len, PAGE.split("```")[1].splitlines())) <= 100
    alone = set(re.findall(r"`(\w+\.py)`", PAGE))  # else a reader has to guess the room
    assert alone <= {
        "answering.py",
        "client.py",
        "database.py",
        "errors.py",
        "logs.py",
        "looking.py",
        "points.py",
        "running.py",
        "telling.py",
        "transacting.py",
        "vocabulary.py",
        "warehouse.py",
    }


RECIPES = {
    "Add an operator": "test_an_operator_is_added",
    "Add an expression on the driver": "test_an_expression_on_the_driver_is_added",
    "Add an apply strategy": "test_an_apply_strategy_is_added",
    "Add a statement": "test_a_statement_is_added",
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_numbered_steps_that_name_files_and_says_which_test_follows_it(recipe: str) -> None:
    body = PAGE.split(f"### {recipe}\n")[1].split("\n#")[0]
    steps = re.split(r"^(\d+)\. ", body, flags=re.MULTILINE)
    assert [int(number) for number in steps[1::2]] == list(range(1, len(steps) // 2 + 1))
    assert len(steps) // 2 >= 4
    assert all(re.search(r"`[\w/]+\.(?:py|md)`", step) for step in steps[2::2])
    assert f"`{RECIPES[recipe]}`" in steps[0]
    assert RECIPES[recipe] in globals()


# -- tables that need no Spark -----------------------------------------------------------------------------------------

ORDERS = StructType(
    [StructField("id", IntegerType()), StructField("region", StringType()), StructField("amount", DecimalType(10, 2))]
)
TOTALS = StructType(
    [StructField("region", StringType()), StructField("total", DecimalType(20, 2)), StructField("orders", LongType()),
     StructField("__rows", LongType()), StructField("__count0", LongType())]
)  # fmt: skip


def orders(*rows: tuple[int, str, int]) -> pa.Table:
    ids, regions, amounts = zip(*rows, strict=True)
    exact = pa.array([Decimal(amount) for amount in amounts], pa.decimal128(10, 2))
    return pa.table({"id": pa.array(ids, pa.int32()), "region": regions, "amount": exact})


def made(path: Path, schema: StructType) -> Snapshot:
    create_table(str(path), schema.json(), path.name)
    return Snapshot(str(path))


def there(table: str) -> pa.Table:
    found = Pinned(spark=NO_SPARK, snapshot=Snapshot(table)).read().rows()
    assert found is not None
    return found


def applied(table: Snapshot, rows: Frame, keys: Sequence[str] | None, places: Any = None) -> Applied:
    inserted, deleted = totals(rows)
    change = TableChange(rows=rows, inserted=inserted, deleted=deleted, keys=keys, local=rows.rows(), places=places)
    return apply_change(NO_SPARK, table, change, node="toy", run=Run("run"))


def appended(table: Snapshot, rows: pa.Table) -> int:
    """The version that rows of an INSERT make."""
    with held_log(table.path) as log:
        return commit(RowChange(table=table, operation="WRITE", inserted=rows, blind=True), log)


def test_the_way_of_a_change(tmp_path: Path) -> None:
    """The walk of the page: two orders into the README's ``totals``."""
    source, target = made(tmp_path / "orders", ORDERS), made(tmp_path / "totals", TOTALS)
    query = "SELECT region, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY region"
    (plan,) = split(build(parse_query(query), {"orders": ("id", "region", "amount")}), "totals")
    node = maintained_node(plan, {"x0": "decimal(10,2)", "v0": "decimal(20,2)", "x1": "int", "v1": "bigint"})
    first, new = orders((1, "eu", 10), (2, "us", 20), (3, "eu", 30)), orders((4, "us", 25), (5, "asia", 5))
    with without_spark():
        assert can_append(source)
        before = appended(source, first)
        held = node.evaluate(Memory({"orders": ChangedTable(first, first)}), "post")
        applied(target, held.select([*columns(held.columns), (WEIGHT, tree("1L"))]), node.keys)
        after = appended(Snapshot(source.path), new)

        found = read_change(NO_SPARK, Snapshot(source.path, before), Snapshot(source.path, after), ["region", "amount"])
        assert found.rows is not None
        assert counted(found.rows, weighted=True) == {(Decimal(25), "us"): 1, (Decimal(5), "asia"): 1}

        inputs = Memory({"orders": ChangedTable(first, there(source.path))})
        change = node.delta(inputs, Held(there(target.path)))
        assert change is not None
        assert counted(change.only(["region", "total", "orders", WEIGHT]), weighted=True) == {
            (1, "us", Decimal(20)): -1, (2, "us", Decimal(45)): 1, (1, "asia", Decimal(5)): 1,
        }  # fmt: skip
        assert applied(Snapshot(target.path), change, node.keys).strategy == "OVERWRITE"
        now = ArrowFrame.of(NO_SPARK, there(target.path).select(["region", "total", "orders"]))
        assert counted(now, weighted=False) == {
            (2, "eu", Decimal(40)): 1, (2, "us", Decimal(45)): 1, (1, "asia", Decimal(5)): 1,
        }  # fmt: skip


# -- add an operator ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Twice:
    """Every row of the child, twice."""

    child: Operator

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


def doubled(frame: Frame) -> Frame:
    names = [name for name in frame.columns if name != WEIGHT]
    return frame.select([*columns(names), (WEIGHT, tree(f"{WEIGHT} * 2L"))])


def evaluate(op: Twice, context: Context, moment: Moment) -> ZSet:
    return ZSet(doubled(with_weight(rules.evaluate(op.child, context, moment))), weighted=True)


def delta(op: Twice, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    return None if change is None else replace(change, frame=doubled(change.frame))


def once(op: Twice, context: Context) -> Delta | None:
    """Wrong: the change of the child as it is."""
    return rules.delta(op.child, context)


def holds(op: Any, memory: Memory) -> bool:
    """The law: what was before and the change are what is after."""
    before, after = (rules.evaluate(op, memory, moment) for moment in ("pre", "post"))
    change = rules.delta(op, memory)
    found = counted(before.frame, weighted=before.weighted)
    found.update(counted(change.frame, weighted=True) if change is not None else {})
    return {row: weight for row, weight in found.items() if weight} == counted(after.frame, weighted=after.weighted)


def laws(seeds: range) -> list[bool]:
    """Of the toy over random trees and random changes, where the driver can compute them."""
    found = []
    for seed in seeds:
        maker = Maker(seed)
        try:
            found.append(holds(Twice(maker.stateless(3).op), Memory(maker.tables)))
        except NeedsSpark:
            continue
    return found


def test_an_operator_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    toy: Any = Twice(Scan("r", (("__c1", "a"),)))
    assert list(walk(toy)) == [toy, toy.child]
    assert mapped(toy, lambda child: Project(child, ())) == Twice(Project(toy.child, ()))  # type: ignore[arg-type]
    with without_spark(), timing(Clock()):
        with pytest.raises(KeyError):
            rules.delta(toy, Memory({}))
        known = rules.RULES
        monkeypatch.setattr(rules, "RULES", {**known, Twice: SimpleNamespace(evaluate=evaluate, delta=delta)})
        right = laws(range(60))
        assert len(right) > 40
        assert all(right)
        monkeypatch.setattr(rules, "RULES", {**known, Twice: SimpleNamespace(evaluate=evaluate, delta=once)})
        assert not all(laws(range(60)))


# -- add an expression on the driver -----------------------------------------------------------------------------------


class Shout(exp.Upper):
    """A node that has no rule."""


def test_an_expression_on_the_driver_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_RULES", dict(values._RULES))
    monkeypatch.setattr(values, "_FUNCTIONS", dict(values._FUNCTIONS))
    rows = ArrowFrame.of(NO_SPARK, pa.table({"t": ["a", None, "b"]}))
    called, node = values.parsed("WHISPER(t)"), Shout(this=column("t"))
    assert isinstance(called, exp.Anonymous)
    with without_spark(), timing(Clock()) as clock:
        for toy in (called, node):
            with pytest.raises(NeedsSpark):
                rows.select([("v", toy)])
        assert any("WHISPER" in note for note in clock.by_spark)

        @values.function("WHISPER", takes=(1,))
        def _whispered(operands: list[exp.Expr], rows: values.Rows) -> Value:
            return values.each(values.spread(text(operands[0], rows), rows.count), lambda t: f"{t}..", pa.string())

        @values.rule(Shout, reads=("this",))
        def _shouted(node: Shout, rows: values.Rows) -> Value:
            return values.each(values.spread(text(node.this, rows), rows.count), lambda t: f"{t}!", pa.string())

        found = rows.select([("w", called), ("s", node), ("both", tree("x || y", x=called, y=node))]).rows()
        assert found is not None
        assert found.to_pydict() == {
            "w": ["a..", None, "b.."], "s": ["a!", None, "b!"], "both": ["a..a!", None, "b..b!"],
        }  # fmt: skip
        for more in (values.parsed("WHISPER(t, 2)"), Shout(this=column("t"), quietly=exp.true())):
            with pytest.raises(NeedsSpark):  # what a rule does not look at is not overlooked
                rows.select([("v", more)])


# -- add an apply strategy ---------------------------------------------------------------------------------------------


def changed(*rows: tuple[int, str, int]) -> Frame:
    a, b, weights = zip(*rows, strict=True)
    table = pa.table({"a": pa.array(a, pa.int32()), "b": b, WEIGHT: pa.array(weights, pa.int64())})
    return ArrowFrame.of(NO_SPARK, table)


def always_marked(before: Snapshot, change: TableChange, found: Any, off: Any) -> tuple[str, Patch]:
    """The toy, MARK: it patches wherever it can, whatever that costs."""
    plan = plan_patch(before.files, before.deleted, found, change.inserted)
    rows = sum(file.rows or 0 for file in before.files)
    sizes = {"touched_rows": rows, "touched_files": 1, "removed": change.deleted, "added": change.inserted}
    return "MARK", replace(plan, weighed={**weighed(**sizes), "MARK": change.inserted})


def test_an_apply_strategy_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t", StructType([StructField("a", IntegerType()), StructField("b", StringType())]))
    with without_spark():
        assert applied(table, changed(*((i, "x", 1) for i in range(20))), None).strategy == "APPEND"
        monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 10)
        before = Snapshot(table.path)
        where = {before.files[0].path: BitMap64([3])}
        update = changed((3, "x", -1), (3, "y", 1))
        monkeypatch.setattr(apply, "_planned", always_marked)
        done = applied(before, update, None, where)
        assert (done.strategy, done.version) == ("MARK", before.version + 1)
        after = Snapshot(table.path)
        assert set(before.deleted) == set()
        assert {path: list(rows) for path, rows in after.deleted.items()} == {before.files[0].path: [3]}
        expected = {(i, "y" if i == 3 else "x"): 1 for i in range(20)}
        assert counted(ArrowFrame.of(NO_SPARK, there(table.path)), weighted=False) == expected

        found = read_change(NO_SPARK, before, after, ["a", "b"])  # readers of the table see what was applied
        assert found.rows is not None
        assert counted(found.rows, weighted=True) == {(3, "x"): -1, (3, "y"): 1}

        with pytest.raises(StateMismatch):  # a removal that finds nothing is a proof
            applied(after, changed((4, "x", -1), (5, "x", -1)), None, {before.files[0].path: BitMap64([4])})
        with pytest.raises(penstock.PenstockError, match="another writer"):  # a commit is made for one version
            applied(before, update, None, where)
        assert Snapshot(table.path).version == after.version

    past = [(way, {"weighed": done.weighed, "wrote": 0.5}) for way in ("MARK", "REWRITE")]
    assert cost.written(past).keys() == {"MARK", "REWRITE"}  # what it took is learnt by its name


# -- add a statement ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShowWeather(s.Reading):
    """SHOW WEATHER."""


@dataclass(frozen=True)
class Praise(s.Statement):
    """PRAISE name."""

    name: str


def praising(usual: Callable[[Answering, s.Statement], Any]) -> Callable[[Answering, s.Statement], Any]:
    """``Answering.answer`` with a case for the toy."""

    def answer(self: Answering, statement: s.Statement) -> Any:
        match statement:
            case Praise(name=name):
                return penstock.Done(f"{name} is praised")
        return usual(self, statement)

    return answer


def test_a_statement_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("SHOW WEATHER", "PRAISE totals"):
        with pytest.raises(SqlError):
            parser.parse(said)
    monkeypatch.setitem(parser._READERS, ("SHOW", "WEATHER"), parser._plain(ShowWeather, "SHOW", "WEATHER"))
    monkeypatch.setitem(parser._READERS, ("PRAISE",), parser._named(Praise, "PRAISE"))
    weather, praise = parser.parse("show weather;"), parser.parse("Praise Totals")
    assert weather == ShowWeather("show weather")
    assert praise == Praise("Praise Totals", "Totals")
    assert weather.only_reads
    assert not praise.only_reads
    with pytest.raises(SqlError):
        parser.parse("SHOW WEATHER tomorrow")
    with penstock.connect(tmp_path / "warehouse") as db:
        before = db._at.spark.started  # by another test of this process
        with pytest.raises(InternalError, match="no way to run ShowWeather"):
            db.sql("SHOW WEATHER")
        monkeypatch.setattr(Answering, "answer", praising(Answering.answer))
        assert str(db.sql("PRAISE totals")) == "totals is praised"
        assert db._at.spark.started == before
