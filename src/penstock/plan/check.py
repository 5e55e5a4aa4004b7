"""Which expressions a rule can carry: functions of their arguments alone, one value a row."""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.plan import functions
from penstock.plan.aggregates import check_aggregate, is_aggregate, is_over_window
from penstock.plan.unsupported import NonDeterministic, Unsupported
from penstock.sql.emission import WATERMARK
from penstock.vocabulary import Reason


def check_expression(root: exp.Expr, *, windows: bool = False, generator: bool = False, sessions: bool = False) -> None:
    """Raise ``Unsupported`` for the first construct that has no rule.

    ``windows``: window functions may stand in it. ``generator``: it may be a generator. ``sessions``: its rows may be
    grouped by sessions.
    """
    for node in root.walk():
        if is_subquery(node):
            raise Unsupported(Reason.SUBQUERY, "a subquery in this place")
        if isinstance(node, exp.Window) and not windows:
            raise Unsupported(
                Reason.WINDOW_FUNCTION, f"the window function {node.this.sql(dialect='spark')} in this place"
            )
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            raise Unsupported(Reason.QUERY_FORM, "a star inside an expression")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise Unsupported(Reason.EXPRESSION, f"the parameter {node.sql(dialect='spark')}")
        if isinstance(node, exp.Func) and not (sessions and is_session(node)):
            _check_function(node, generator=generator and node is root)


def is_session(node: exp.Expr) -> bool:
    """Whether a node is Spark's ``session_window`` with a fixed gap."""
    if not isinstance(node, exp.Anonymous) or str(node.this).upper() != "SESSION_WINDOW":
        return False
    return len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Literal)


def is_subquery(node: exp.Expr) -> bool:
    """Whether a node is a query inside an expression; EXISTS(array, x -> ..) is a function."""
    return isinstance(node, exp.Query) or (isinstance(node, exp.Exists) and isinstance(node.this, exp.Query))


def non_deterministic(tree: exp.Expr) -> NonDeterministic | None:
    """The first function of a query whose value changes by itself, if there is one."""
    for node in tree.find_all(exp.Func, exp.TableSample):
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
            word = re.match(r"\s*(now|today|tomorrow|yesterday)\b", node.this.name, re.IGNORECASE)
            if word:  # DATE'today' is the day on which Spark reads it
                return NonDeterministic(f"{node.to.sql(dialect='spark')}'{word.group(1)}'")
        name = "tablesample" if isinstance(node, exp.TableSample) else functions.function_name(node)
        if name in functions.NON_DETERMINISTIC or name == "tablesample":
            return NonDeterministic(name)
    return None


def _check_function(node: exp.Expr, *, generator: bool) -> None:
    if is_over_window(node):
        return
    if is_aggregate(node):
        check_aggregate(node)
        return
    name = functions.function_name(node)
    if name is None or (generator and name in functions.GENERATORS):
        return
    if name in functions.NON_DETERMINISTIC:
        raise NonDeterministic(name)
    if name == "unix_timestamp" and not list(node.iter_expressions()):
        raise NonDeterministic(name)
    if name in functions.GENERATORS:
        raise Unsupported(Reason.GENERATOR, f"the generator {name.upper()} in this place")
    if name in functions.WINDOW_ONLY:
        raise Unsupported(Reason.WINDOW_FUNCTION, f"the window function {name.upper()}")
    if name in ("window", "session_window", "window_time"):
        raise Unsupported(Reason.TIME_WINDOW, f"the function {name.upper()}")
    if name not in functions.SCALARS and name.upper() != WATERMARK:
        raise Unsupported(Reason.UNKNOWN_FUNCTION, f"the function {name}, which is not one of Spark's own")
