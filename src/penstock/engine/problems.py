"""What went wrong while a node was computed, whoever raised it, as an error of ours and in words."""

from __future__ import annotations

from penstock.errors import PenstockError, QueryError, without_values
from penstock.frames.spark.problems import SPARK_PROBLEMS, clean_message, is_lost, jvm_lost


def as_error(problem: Exception) -> PenstockError:
    """The problem as one of ours."""
    if isinstance(problem, PenstockError):
        return problem
    if is_lost(problem):
        return jvm_lost("it was not refreshed")
    if isinstance(problem, SPARK_PROBLEMS):
        return QueryError(clean_message(problem, {}))
    told = PenstockError(f"{type(problem).__name__}: {problem}")
    told.__cause__ = problem
    return told


def told_of(problem: PenstockError | None) -> str | None:
    """What is said of it where no value of a row may be."""
    if problem is None:
        return None
    said = without_values(problem)
    return said if said == str(problem) else f"{said}. SHOW REFRESH HISTORY has the whole message"
