"""Statements of few rows without Spark: random ones, beside what they mean in plain Python, and who reads the result.

A statement either does what it means here, or is left to Spark, which is not there, and nothing has changed.
"""

from __future__ import annotations

import json
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import penstock
from penstock import points
from penstock.frames import limits
from penstock.frames.names import WEIGHT
from penstock.ivm.in_memory import NO_SPARK, NeedsSpark, without_spark
from penstock.storage.changes import read_change
from penstock.storage.delta_log import Snapshot, newest
from penstock.storage.log_writer import held_log, put, said
from penstock.storage.row_change import RowChange, commit
from races import between

Row = tuple[Any, ...]
IDS, TEXTS, NUMBERS = [1, 2, 3, 4, 5, None], ["a", "b", "é", None], [-1, 0, 7, None]


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[penstock.Database]:
    """A warehouse where Spark never comes."""
    with penstock.connect(tmp_path / "warehouse") as db:

        def never() -> Any:
            raise NeedsSpark

        monkeypatch.setattr(db._at.spark, "session", never)
        monkeypatch.setattr(type(db._at.spark), "started", False)  # whatever other tests have started
        yield db


def path_of(db: penstock.Database, table: str = "t") -> str:
    return str(db._catalog.world().tables[table].path)


def rows_of(db: penstock.Database, table: str = "t") -> Counter[Row]:
    """As another reader of Delta sees them."""
    query = QueryBuilder().register("x", DeltaTable(path_of(db, table))).execute("SELECT * FROM x")
    return Counter(tuple(row.values()) for row in pa.table(query.read_all()).to_pylist())


def change_of(db: penstock.Database, version: int) -> Counter[Row]:
    """What a commit has changed, as a view that reads the table sees it: rows that came, less those that went."""
    path, found = path_of(db), Counter[Row]()
    with without_spark():
        read = read_change(NO_SPARK, Snapshot(path, version - 1), Snapshot(path, version), ["id", "k", "x"])
        rows = None if read.rows is None else read.rows.arrow()
    for row in rows.to_pylist() if rows is not None else ():
        found[row["id"], row["k"], row["x"]] += row[WEIGHT]
    return found


def true(one: Any, other: Any, compared: Callable[[Any, Any], bool]) -> bool:
    return one is not None and other is not None and compared(one, other)


ON = {
    "t.id = s.id": lambda t, s: true(t[0], s[0], lambda a, b: a == b),
    "s.id <=> t.ID": lambda t, s: t[0] == s[0],
    "t.id = s.id AND t.k = s.k": lambda t, s: (
        true(t[0], s[0], lambda a, b: a == b) and true(t[1], s[1], lambda a, b: a == b)
    ),
    "t.id = s.id AND t.x > 0": lambda t, s: true(t[0], s[0], lambda a, b: a == b) and true(t[2], 0, lambda a, b: a > b),
}
OF_T = {"t.x = 7": lambda t: t[2] == 7, "t.k IS NULL": lambda t: t[1] is None, "T.id > 2": lambda t: (t[0] or 0) > 2}
OF_S = {"s.x >= 0": lambda s: true(s[2], 0, lambda a, b: a >= b), "s.k <> 'a'": lambda s: s[1] not in ("a", None)}


class Statements:
    """Random statements on t (id, k, x) and s, as text and as a function from rows to rows and how many it touches."""

    def __init__(self, seed: int):
        self.chance = Random(seed)

    def row(self) -> Row:
        return self.chance.choice(IDS), self.chance.choice(TEXTS), self.chance.choice(NUMBERS)

    def merge(self, source: list[Row]) -> tuple[str, Callable[[list[Row]], tuple[list[Row], int] | None]]:
        on = self.chance.choice(list(ON))
        matched = [self._clause(OF_T, own=True) for _ in range(self.chance.randint(0, 2))]
        if any(not condition for condition, *_ in matched[:-1]):
            return self.merge(source)
        absent = [self._condition(OF_S) for _ in range(self.chance.randint(0, 1))]
        left = [self._clause(OF_T, own=False) for _ in range(self.chance.choice([0, 0, 1]))]
        text = f"MERGE INTO t USING s ON {on} "
        text += " ".join(f"WHEN MATCHED {c} THEN {a}" for c, _, a, _ in matched)
        text += "".join(f" WHEN NOT MATCHED {c} THEN INSERT (k, id) VALUES (s.k, s.id)" for c, _ in absent)
        text += "".join(f" WHEN NOT MATCHED BY SOURCE {c} THEN {a}" for c, _, a, _ in left)
        if not matched + absent + left:
            return self.merge(source)

        def done(rows: list[Row]) -> tuple[list[Row], int] | None:
            found, touched, met = [], 0, set()
            for t in rows:
                partners = [n for n, s in enumerate(source) if ON[on](t, s)]
                met.update(partners)
                deleting = [(c, a) for c, _, a, _ in matched] == [("", "DELETE")]
                if len(partners) > 1 and not deleting and (matched or left):
                    return None
                clauses = matched if partners else left
                other = source[partners[0]] if partners else t
                meant = next((make for _, test, _, make in clauses if test(t)), None)
                touched += meant is not None
                new = t if meant is None else meant(t, other)
                found += [] if new is None else [new]
            for number, s in enumerate(source):
                if number not in met and absent and absent[0][1](s):
                    found.append((s[0], s[1], None))
                    touched += 1
            return found, touched

        return text, done

    def _condition(self, tests: dict[str, Any]) -> tuple[str, Any]:
        name = self.chance.choice(["", *tests])
        return (f"AND {name}", tests[name]) if name else ("", lambda _: True)

    def _clause(self, tests: dict[str, Any], *, own: bool) -> tuple[str, Any, str, Any]:
        condition, test = self._condition(tests)
        if self.chance.random() < 0.3:
            return condition, test, "DELETE", lambda t, s: None
        if own:
            return condition, test, "UPDATE SET t.x = s.x, k = s.k", lambda t, s: (t[0], s[1], s[2])
        return condition, test, "UPDATE SET x = id", lambda t, s: (t[0], t[1], t[0])

    def change(self) -> tuple[str, Callable[[list[Row]], tuple[list[Row], int]]]:
        name = self.chance.choice(list(OF_T))
        test = OF_T[name]
        if self.chance.random() < 0.5:
            return f"DELETE FROM t WHERE {name}", lambda rows: ([r for r in rows if not test(r)], sum(map(test, rows)))
        new = lambda r: (r[2], r[1], r[0])  # noqa: E731
        return f"UPDATE t SET id = x, x = id WHERE {name}", lambda rows: (
            [new(r) if test(r) else r for r in rows], sum(map(test, rows)))  # fmt: skip


def literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def values(rows: list[Row]) -> str:
    return ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


@pytest.mark.parametrize("looked_up", [False, True])
def test_random_statements_do_what_they_mean(
    alone: penstock.Database, monkeypatch: pytest.MonkeyPatch, looked_up: bool
) -> None:
    if looked_up:
        monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0)
    alone.sql("CREATE TABLE t (id BIGINT, k STRING, x BIGINT)")
    alone.sql("CREATE TABLE s (id INT, k STRING, x INT)")
    maker = Statements(5 + looked_up)
    rows: list[Row] = []
    done = 0
    for turn in range(60):
        source = [maker.row() for _ in range(maker.chance.randint(0, 4))]
        new = [(turn + 10, "new", None)] if maker.chance.random() < 0.3 else [maker.row() for _ in range(2)]
        alone.sql("DELETE FROM s")
        if source:
            alone.sql(f"INSERT INTO s VALUES {values([*source, (0, '', 0)])}")
            alone.sql("DELETE FROM s WHERE id = 0")
        if turn % 3 == 0:
            rows += new + source
            assert alone.sql(f"INSERT INTO t VALUES {values([*new, (0, 'x', 0)])}").rows == len(new) + 1
            rows.append((0, "x", 0))
            assert alone.sql("INSERT INTO t BY NAME SELECT k, x + 0 AS X, id FROM s").rows == len(source)
        text, meant = maker.merge(source) if turn % 2 else maker.change()
        before = newest(path_of(alone)).version
        expected = meant(rows)
        if expected is None:
            with pytest.raises(NeedsSpark):
                alone.sql(text)
            assert newest(path_of(alone)).version == before
            continue
        old, (rows, touched) = Counter(rows), expected
        assert alone.sql(text).rows == touched, text
        assert rows_of(alone) == Counter(rows), text
        if touched:
            old.update(change_of(alone, before + 1))
            assert +old == Counter(rows), text
            done += 1
    assert done > 25


def test_a_large_table_is_not_read_for_a_few_rows(alone: penstock.Database) -> None:
    """More rows than are ever read whole: by key, by list, by bounds, and by the keys of a MERGE."""
    count = 1_200_000
    alone.sql("CREATE TABLE t (id BIGINT, k STRING, x INT)")
    ids = np.arange(count)
    many = pa.table(
        {"id": ids, "k": pa.array(["a", "b", None]).take(pa.array(ids % 3)), "x": (ids % 10).astype("int32")}
    )
    with held_log(path_of(alone)) as log:
        commit(RowChange(table=newest(path_of(alone)), operation="WRITE", inserted=many, blind=True), log)
    for text, touched in (
        ("UPDATE t SET x = x + 100 WHERE id = 777777", 1),
        ("DELETE FROM t WHERE 777777 = id AND x < 100", 0),
        ("DELETE FROM t WHERE id IN (1, 1199999, -5)", 2),
        ("UPDATE t SET k = 'low' WHERE id BETWEEN 10 AND 19 AND k IS NOT NULL", 7),
        ("UPDATE t SET k = 'end' WHERE id >= 1199990 AND id < 1300000", 9),
        ("MERGE INTO t USING (VALUES (777777, 'm'), (9999999, 'n')) AS s(id, k) ON s.id = t.id "
         "WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, s.k)", 2),
        ("DELETE FROM t WHERE k = 'end' AND x = 5", 1),
    ):  # fmt: skip
        assert alone.sql(text).rows == touched, text
    for text in ("UPDATE t SET x = 0 WHERE x + 1 = 5", "DELETE FROM t"):
        with pytest.raises(NeedsSpark):
            alone.sql(text)
    assert newest(path_of(alone)).rows == count - 2


def test_defaults_constraints_and_subqueries(alone: penstock.Database) -> None:
    alone.sql("CREATE TABLE t (id INT NOT NULL, k STRING, n INT, y DECIMAL(6,2))")
    alone.sql("CREATE TABLE s (id INT)")
    alone.sql("INSERT INTO s VALUES (1), (3), (NULL)")
    asking(path_of(alone), {"n": "1 + 6", "k": "'none'"}, {"low": "n < 10", "named": "k <> ''"})
    alone.sql("INSERT INTO t (id) VALUES (1)")
    alone.sql("INSERT INTO t VALUES (2, DEFAULT, 2, 1), (3, 'c', default, 0.005)")
    alone.sql("UPDATE t SET n = n + 1, k = DEFAULT WHERE id IN (SELECT id FROM s)")
    alone.sql("UPDATE t SET y = (SELECT MAX(id) FROM s) WHERE id = (SELECT MIN(id) + 1 FROM s)")
    alone.sql("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED AND s.id = 9 THEN INSERT (id) VALUES (s.id)")
    assert {tuple(map(str, row)) for row in rows_of(alone)} == {
        ("1", "none", "8", "None"), ("2", "none", "2", "3.00"), ("3", "none", "8", "0.01"),
    }  # fmt: skip
    for refused in (
        "INSERT INTO t (id, n) VALUES (4, 10)", "INSERT INTO t (id, n) VALUES (4, NULL)",
        "INSERT INTO t (k) VALUES ('x')", "UPDATE t SET n = n + 2", "UPDATE t SET k = ''",
        "DELETE FROM t WHERE id NOT IN (SELECT id FROM s) OR EXISTS "
        "(SELECT 1 FROM s WHERE s.id = t.id)", "INSERT INTO t (id, y) VALUES (4, '1')", "UPDATE t SET nothing = 1",
        "UPDATE t SET id = (SELECT id FROM s)", "INSERT INTO t BY NAME SELECT 1 AS id, 2 AS other",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        "INSERT INTO t (id) SELECT id FROM s LIMIT 1",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = DEFAULT",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET n = 1",
        "INSERT INTO t (id, k) SELECT id, id FROM s", "INSERT OVERWRITE t SELECT 1, 'a', 1, 1",
    ):  # fmt: skip
        with pytest.raises(NeedsSpark):
            alone.sql(refused)
    assert newest(path_of(alone)).version == 5


def asking(path: str, defaults: dict[str, str], constraints: dict[str, str]) -> None:
    """Let a table have defaults and constraints, as Spark writes them."""
    state = Snapshot(path).state
    schema = json.loads(state.metadata["schemaString"])
    for column in schema["fields"]:
        column["metadata"] |= {"CURRENT_DEFAULT": defaults[column["name"]]} if column["name"] in defaults else {}
    told = {f"delta.constraints.{name}": text for name, text in constraints.items()}
    configuration = {**state.metadata["configuration"], **told}
    metadata = {**state.metadata, "schemaString": json.dumps(schema), "configuration": configuration}
    more = ["allowColumnDefaults", "checkConstraints"]
    protocol = {**state.protocol, "writerFeatures": [*state.protocol["writerFeatures"], *more]}
    put(path, Snapshot(path).version + 1, [said("SET"), {"protocol": protocol}, {"metaData": metadata}])


def test_another_writer_between(alone: penstock.Database) -> None:
    """A statement is computed again on what another has left; nothing stays of the first attempt."""
    alone.sql("CREATE TABLE t (id INT, x INT)")
    alone.sql("INSERT INTO t VALUES (1, 1)")
    merge = "MERGE INTO t USING (VALUES (2), (3)) AS s(id) ON t.id = s.id "
    both = "WHEN MATCHED THEN UPDATE SET x = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    with between(points.COMMIT, 1, lambda: alone.sql("INSERT INTO t VALUES (2, 2)")) as came:
        assert alone.sql(merge + both).rows == 2
    with between(points.COMMIT, 1, lambda: alone.sql("UPDATE t SET x = 5 WHERE id = 1")) as later:
        assert alone.sql("INSERT INTO t VALUES (5, 5)").rows == 1
    assert came
    assert later
    assert rows_of(alone) == Counter([(1, 5), (2, 0), (3, None), (5, 5)])
    kept = {path.name for path in Path(path_of(alone)).glob("run-*/*.parquet")}
    assert {Path(file.path).name for file in newest(path_of(alone)).files} <= kept
    assert len(kept) == 5, "what was written by INSERT, INSERT, MERGE, UPDATE and INSERT, each once"


@contextmanager
def files_up_to(most: int) -> Iterator[None]:
    """No file grows beyond some bytes, as on a disk that is full."""
    known = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, known[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, known)


def test_a_full_disk_is_told_and_the_transaction_goes_on(alone: penstock.Database) -> None:
    alone.sql("CREATE TABLE t (id INT)")
    with alone.transaction() as tx:
        with files_up_to(10), pytest.raises(penstock.WarehouseError, match=r"on 't' failed: .* its disk has room"):
            tx.sql("INSERT INTO t VALUES (1)")
        tx.sql("INSERT INTO t VALUES (2)")
    assert rows_of(alone) == Counter([(2,)])
    tx = alone.transaction()
    tx.sql("INSERT INTO t VALUES (3)")
    with files_up_to(10), pytest.raises(penstock.WarehouseError), tx:
        pass  # its end comes when the disk is full
    assert rows_of(alone) == Counter([(2,)])
    alone.sql("INSERT INTO t VALUES (4)")
    assert rows_of(alone) == Counter([(2,), (4,)])
