"""What to do next: one sentence for each reason code, and what to switch on in the tables that a view reads."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.vocabulary import Reason

NEXT_STEPS: Mapping[Reason, str] = {
    # why a refresh did what it did
    Reason.SOURCE_REPLACED: "Nothing to do: the next refresh is incremental. To keep a table's history, write it by "
    "INSERT OVERWRITE or MERGE instead of making it anew.",
    Reason.HISTORY_GONE: "Refresh more often than the table is vacuumed, or keep its files longer: ALTER TABLE .. SET "
    "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 30 days').",
    Reason.STATE_MISMATCH: "Run penstock verify, and look for what else writes to the view's table or its sources.",
    Reason.SCHEMA_CHANGED: "Nothing to do: the view was planned and filled anew, and the next refresh is incremental.",
    Reason.VIEW_REPLACED: "Nothing to do: the view was planned and filled anew, and the next refresh is incremental.",
    Reason.PLAN_CHANGED: "Nothing to do: the view was planned and filled anew, and the next refresh is incremental.",
    Reason.CHEAPER: "Nothing to do. To maintain it all the same: ALTER MATERIALIZED VIEW .. REFRESH POLICY "
    "INCREMENTAL.",
    Reason.TRIED_AGAIN: "Nothing to do: AUTO looks whether this way is still the slower one, and remembers what it "
    "finds.",
    Reason.POLICY_FULL: "ALTER MATERIALIZED VIEW .. REFRESH POLICY AUTO maintains it, if its query can be and reads "
    "Delta tables only.",
    Reason.HELD_BY_ANOTHER: "Wait for the other process, and refresh again.",
    Reason.UPSTREAM_FAILED: "Look at the view that it reads: SHOW REFRESH HISTORY tells what failed.",
    Reason.GROUP_FAILED: "Mend the view that failed, or let views advance on their own: CONSISTENCY NONE.",
    Reason.NOT_DUE: "Wait, or REFRESH MATERIALIZED VIEW .. FULL.",
    Reason.LEASE_LOST: "Refresh again. If it happens often, see what pauses the process, or keeps it from the catalog.",
    Reason.INTERRUPTED: "Refresh again.",
    Reason.ERROR: "Do what the message says, and refresh again.",
    # why a view is recomputed at every change
    Reason.AGGREGATE_FILTER: "Write CASE WHEN inside the aggregate instead of FILTER behind it.",
    Reason.AGGREGATE_FUNCTION: "Use MIN, MAX, MIN_BY, MAX_BY or PERCENTILE, which do not depend on the order of rows.",
    Reason.CORRELATED_SUBQUERY: "Write it as a join with a grouped subquery.",
    Reason.DISTINCT_AGGREGATE: "Aggregate over a subquery with SELECT DISTINCT.",
    Reason.EXPRESSION: "Write the value into the query, instead of a parameter.",
    Reason.GENERATOR: "Use EXPLODE or POSEXPLODE with a name for each column, and one of them in each SELECT.",
    Reason.GROUPING_SETS: "Name in GROUPING only what is grouped by.",
    Reason.JOIN: "Write it as an inner, left, full, semi or anti join.",
    Reason.LATERAL: "Put the condition into WHERE, or the generator into a subquery of its own.",
    Reason.LIMIT: "Write ORDER BY before it, and a number behind it.",
    Reason.NON_DETERMINISTIC: "Take it out; for a moment, put it into a table of one row, update that, and join it.",
    Reason.PIVOT: "Write an aggregate with CASE WHEN for each column.",
    Reason.PLAN_MISMATCH: "Write the query in simpler words; please report it too.",
    Reason.QUERY_FORM: "Write the columns out instead of SELECT * REPLACE or EXCEPT, and read tables as they are now.",
    Reason.RECURSIVE_CTE: "Write as many joins as there are levels, or keep the levels in a table.",
    Reason.SCALAR_SUBQUERY: "Select one aggregate in the subquery, so that it has one row.",
    Reason.SET_OPERATION: "List the columns of both sides in the same order, and leave BY NAME out.",
    Reason.SOURCE_COLUMN: "Make the column a STRING or VARCHAR; __weight needs another name.",
    Reason.SUBQUERY: "Write it as a join, or as EXISTS in WHERE.",
    Reason.TABLE_FORM: "Put the rows into a table, or write them as VALUES, and read that.",
    Reason.TIME_WINDOW: "Group by TUMBLE, HOP or SESSION of a TIMESTAMP.",
    Reason.UNKNOWN_FUNCTION: "Use functions of Spark's own: what a function of yours does cannot be known.",
    Reason.UNRESOLVED_NAME: "Write table and column in full: t.column.",
    Reason.WINDOW_FUNCTION: "Give its ORDER BY columns that leave no ties open, or use a function that ties do not "
    "matter to: RANK, SUM, MIN, MAX. DISTINCT in it: aggregate in a subquery first.",
}

NOTHING_TO_DO: Mapping[Reason, str] = {
    Reason.INITIAL: "Nothing to do: the view was filled for the first time.",
    Reason.REQUESTED: "Nothing to do: REFRESH .. FULL was asked for. Without FULL the view is maintained, if its query "
    "can be.",
    Reason.CHANGED: "Nothing to do. If it takes long, EXPLAIN MATERIALIZED VIEW tells where the time goes, and what to "
    "switch on in the tables.",
    Reason.NO_CHANGE: "Nothing to do: there was nothing new in what the view reads.",
    Reason.REPLAYED: "Nothing to do: late rows were taken because REPLAY LATE ROWS was asked for.",
}
"""Of the ordinary reasons, which need no advice where a view is explained."""

_FEED, _VECTORS = "delta.enableChangeDataFeed", "delta.enableDeletionVectors"


def next_step(code: str | None) -> str | None:
    """What a reason code suggests; None where there is nothing to do."""
    return NEXT_STEPS.get(Reason.recorded(code)) if code else None


def suggestion(code: str) -> str | None:
    """What any reason code suggests; None only for a code of another version of Penstock.

    >>> suggestion("LIMIT"), suggestion("OF_OLD")
    ('Write ORDER BY before it, and a number behind it.', None)
    """
    reason = Reason.recorded(code)
    return NEXT_STEPS.get(reason) or NOTHING_TO_DO.get(reason)


def for_table(name: str, configuration: Mapping[str, str]) -> str | None:
    """What to switch on in a table, so that changes of few rows of it are small to read.

    >>> for_table("orders", {"delta.enableDeletionVectors": "true"})
    """
    on = [feature for feature in (_FEED, _VECTORS) if configuration.get(feature, "false").lower() == "true"]
    if on:  # either of them tells the rows that an UPDATE or DELETE touched
        return None
    return (
        f"table {name} has neither deletion vectors nor a change feed: an UPDATE or DELETE of a few rows writes their "
        f"files anew, and a refresh reads the old and the new ones whole. ALTER TABLE {name} SET TBLPROPERTIES "
        f"('{_VECTORS}' = 'true', '{_FEED}' = 'true')"
    )
