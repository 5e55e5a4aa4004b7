"""docs/operators.md, made from what the tests executed."""

from __future__ import annotations

import sys
from pathlib import Path

from evidence import Evidence, load
from penstock.bench.constructs import CONSTRUCTS, ROUNDS
from penstock.observe.suggestions import suggestion

PAGE = "docs/operators.md"

CODES = {
    "AGGREGATE_FILTER": "`FILTER` behind an aggregate without arguments",
    "AGGREGATE_FUNCTION": "an aggregate whose value depends on the order of rows or on chance: `FIRST`, `LAST`, "
    "`ANY_VALUE`, `MODE`, `LISTAGG`, `PERCENTILE_DISC`, `APPROX_PERCENTILE`, sketches",
    "CORRELATED_SUBQUERY": "a subquery that uses names of the query around it elsewhere than in its `WHERE`, or of a "
    "query further out, or that limits, numbers or groups its rows for each of them, or by values of another type",
    "DISTINCT_AGGREGATE": "`DISTINCT` in an aggregate of several arguments other than `COUNT`",
    "EXPRESSION": "an expression that cannot be carried over, such as a parameter",
    "GENERATOR": "a generator whose columns have no names (`STACK`, `INLINE`), or two in one select list",
    "GROUPING_SETS": "`GROUPING` of something that is not grouped by",
    "JOIN": "a join of a kind that is not listed above",
    "LATERAL": "`LATERAL` with a generator and a condition",
    "LIMIT": "`LIMIT` of a number that is computed; without `ORDER BY`: over columns without an order (maps), behind a "
    "query that is sorted itself or a `WINDOW` clause; `OFFSET` without `LIMIT`",
    "NON_DETERMINISTIC": "functions whose value changes by itself, and `TABLESAMPLE`: refused at `CREATE`, except under "
    "`REFRESH POLICY FULL`",
    "PIVOT": "`PIVOT`, `UNPIVOT`",
    "PLAN_MISMATCH": "a query that Spark and Penstock's planner read differently: nothing is risked",
    "POLICY_FULL": "the view's own `REFRESH POLICY FULL`",
    "QUERY_FORM": "a form of query that has no operator, such as `SELECT * REPLACE`",
    "RECURSIVE_CTE": "`WITH RECURSIVE`",
    "SCALAR_SUBQUERY": "a scalar subquery that cannot be seen to give one row",
    "SET_OPERATION": "`UNION BY NAME`",
    "SOURCE_COLUMN": "a column of type CHAR, which Spark pads wherever it compares it, or one called `__weight`",
    "SUBQUERY": "a subquery in `ON`, behind `ALL` or `ANY`, or `NOT IN` of several columns",
    "TABLE_FORM": "table functions in `FROM`, such as `RANGE`",
    "TIME_WINDOW": "`window` and `session_window` without `GROUP BY`, in `WHERE` or `ROLLUP`, beside a column of that name, of times without a zone; sessions whose gap is not fixed",
    "UNKNOWN_FUNCTION": "a function that is not one of Spark's own, SQL functions of the user's included: nothing is "
    "known of it",
    "UNRESOLVED_NAME": "a name that the planner does not find though Spark does",
    "WINDOW_FUNCTION": "window functions whose value depends on an order that is left open, with `DISTINCT`, or in a "
    "place where Spark refuses them",
}

_HEAD = """# Operators: what is maintained incrementally, and how

<!-- Made by the tests from what they executed: `make docs`. Changes by hand are lost. -->

A change is a set of rows with weights: +n for n copies added, -n for n removed. Each operator has a rule that turns the
change of its inputs into the change of its output, in one file under `src/penstock/ivm/` with its equation. A stateful
operator below the top of a query becomes a hidden node with a table of its own; equal ones are shared by all views.

Every line below is a view that a test created, took through {rounds} rounds of inserts, key changes, deletes and an emptied
table, with NULLs, duplicates, ties, NaN and -0.0 in the data, and compared with its query after each
refresh. The last column counts the refreshes that were incremental; the others found nothing to do.
"""

_NOTES = """## What to know

- `AVG` of integers divides the exact sum; Spark adds them up as doubles, so beyond 2^53 its last digits differ by chance.
  `AVG` of decimals is rounded as Spark rounds it. For `AVG` of decimals wider than 27 digits or with more than 13 decimal
  places, for `SUM` of decimals wider than 28 digits, and for sums of `FLOAT` and `DOUBLE`, the touched groups are
  aggregated anew.
- `COLLECT_LIST`, `COLLECT_SET` and `ARRAY_AGG` give sorted arrays, and `MIN_BY` and `MAX_BY` take the smallest or largest
  of the values that tie. Spark leaves both open.
- Where the place of a row matters (`ROW_NUMBER`, `NTILE`, `LAG`, `LEAD`, `ROWS` frames, `LIMIT`), rows that are equal in
  the `ORDER BY` come in the order of all their other columns.
- A window without `PARTITION BY` is one partition: any change computes all of it anew.
- `LIMIT` keeps its rows while others come; when one of them is removed, or with `OFFSET`, it reads all rows. Without
  `ORDER BY` it takes the first rows in the order of all columns of its query. Any would do; these are one answer.
"""

_ACTIONS = """## Why a refresh did what it did

`INITIAL`, `REQUESTED` (`REFRESH .. FULL`), `POLICY_FULL`, `CHANGED` and `NO_CHANGE` explain the ordinary actions.
`FULL` with `CHEAPER`: under the policy `AUTO` so much had changed that recomputing was estimated to be faster.
`TRIED_AGAIN`: under `AUTO` the way that was the slower one when it was last measured is measured again, since the machine
may have been busy then; `explain` says how long ago that was.
`REINITIALIZE` says `SOURCE_REPLACED` (a table was made again, put back from a backup, or restored to before what was read) or
`HISTORY_GONE` (the log or files that the change would be read from were vacuumed) or `STATE_MISMATCH` (a row that was to
be removed was not there, or a count would fall below zero: see [operations.md](operations.md)) or `SCHEMA_CHANGED` (a
column that the view reads has another type) or `VIEW_REPLACED` (a view of Spark's catalog that the query reads was
replaced there) or `PLAN_CHANGED` (this version of Penstock maintains the query in another way). `SKIP` says `UPSTREAM_FAILED` or `HELD_BY_ANOTHER` (another process is refreshing the view). A failed view has the
reason `ERROR` and the message, one whose refresh was interrupted `INTERRUPTED`, one that another process took over
`LEASE_LOST`.

A view that always recomputes because of its query has one of these codes:
"""


def page(constructs: list[Evidence], queries: list[Evidence]) -> str:
    """The whole page."""
    sections: dict[str, list[Evidence]] = {}
    for item in constructs:
        sections.setdefault(item.section, []).append(item)
    parts = [_HEAD.format(rounds=len(ROUNDS))]
    for section, items in sections.items():
        parts.append(f"## {section}\n\n{_recomputed(items) if items[0].code else _maintained(items)}")
    parts.append(_NOTES)
    parts.append(_tpch(queries))
    codes = "\n".join(f"| `{code}` | {words} | {suggestion(code)} |" for code, words in CODES.items())
    parts.append(f"{_ACTIONS}\n| code | construct | what to do |\n|---|---|---|\n{codes}\n")
    return "\n".join(parts)


def _maintained(items: list[Evidence]) -> str:
    lines = ["| construct | maintained by | reads | incremental |", "|---|---|---|---|"]
    for item in items:
        reads = "; ".join(dict.fromkeys(item.reads))
        done = f"{item.actions.count('INCREMENTAL')} of {len(item.actions)}"
        lines.append(f"| {item.name} | {' -> '.join(item.rules)} | {reads} | {done} |")
    return "\n".join(lines) + "\n"


def _recomputed(items: list[Evidence]) -> str:
    lines = ["| construct | code |", "|---|---|"]
    lines += [f"| {item.name} | `{item.code}` |" for item in items]
    return "\n".join(lines) + "\n"


def _tpch(queries: list[Evidence]) -> str:
    always = sum("FULL" not in item.actions for item in queries)
    lines = [
        "## TPC-H", "",
        f"The queries of TPC-H as views on shared tables, through cycles of inserts, deletes and updates: {always} of "
        f"{len(queries)} are incremental.", "",
        "| query | incremental | nothing to do | recomputed |", "|---|---|---|---|",
    ]  # fmt: skip
    for item in queries:
        counts = [item.actions.count(action) for action in ("INCREMENTAL", "NO_DATA", "FULL")]
        lines.append(f"| {item.name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines) + "\n"


def main(task: str) -> int:
    """``write`` the page, or ``check`` that it says what the last run of the tests has shown."""
    constructs, queries = load("constructs"), load("tpch")
    if len(constructs) < len(CONSTRUCTS) or len(queries) < 22:
        print(f"{PAGE}: run the tests first; some did not run, or did not pass")
        return 1
    path = Path(__file__).parents[1] / PAGE
    if task == "write":
        path.write_text(page(constructs, queries))
    elif path.read_text() != page(constructs, queries):
        print(f"{PAGE} does not say what the tests executed: run 'make docs' and commit it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
