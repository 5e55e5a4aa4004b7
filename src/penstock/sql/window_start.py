"""The start of a window of time, as a node of its own: what TUMBLE, HOP and Spark's ``window`` are made of."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class WindowStart(exp.Expression, exp.Func):
    """The start of the window that holds a time: windows are ``width`` microseconds long, and one of them begins
    ``offset`` microseconds after the Unix epoch.

    >>> print(WindowStart.of(exp.column("ts"), 1_000_000).spelled.sql(dialect="spark"))
    DATE_ADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(ts AS TIMESTAMP)), 1000000), ts)
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "width": True, "offset": False}

    @classmethod
    def of(cls, time: exp.Expr, width: int, offset: int = 0) -> WindowStart:
        after = {"offset": exp.Literal.number(offset)} if offset else {}
        return cls(this=time.copy(), width=exp.Literal.number(width), **after)

    @property
    def width(self) -> int:
        return int(self.args["width"].this)

    @property
    def spelled(self) -> exp.Expr:
        """The same in functions that Spark has."""
        moment = exp.Cast(this=self.this.copy(), to=exp.DataType.build("TIMESTAMP", dialect="spark"))
        micros: exp.Expr = exp.UnixMicros(this=moment)
        if self.args.get("offset") is not None:
            micros = exp.Sub(this=micros, expression=self.args["offset"].copy())
        past = exp.Anonymous(this="PMOD", expressions=[micros, self.args["width"].copy()])
        return exp.TimestampAdd(this=self.this.copy(), expression=exp.Neg(this=past), unit=exp.var("MICROSECOND"))
