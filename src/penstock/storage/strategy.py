"""REWRITE or PATCH: the arithmetic, on row counts and past measurements."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.vocabulary import Strategy

_LEAST_SAVED = 0.1
"""Seconds that a patch must spare, to be worth a vector that every later reader looks into."""

_VECTOR_ROWS = 1_000
"""What a vector costs, in rows that could be written instead."""

_START, _PER_MILLION = 0.05, 1.0
"""Seconds to write anything at all, and per million rows."""

Off = Mapping[Strategy, float]
_AS_SAID: Off = {}


def cheaper(
    *, touched_rows: int, touched_files: int, removed: int, added: int, merged: int = 0, off: Off = _AS_SAID
) -> Strategy:
    """REWRITE or PATCH: whether the files that hold removed rows are worth being written again.

    ``off`` says how many times as long as expected the last write of either kind took, where there was one.

    >>> cheaper(touched_rows=2_500_000, touched_files=4, removed=5_000, added=5_000)
    'PATCH'
    >>> cheaper(touched_rows=2_500_000, touched_files=4, removed=2_000_000, added=0)
    'REWRITE'
    >>> cheaper(touched_rows=50_000, touched_files=1, removed=10, added=10)
    'REWRITE'
    >>> off = {"PATCH": 3.0, "REWRITE": 1.0}
    >>> cheaper(touched_rows=900_000, touched_files=4, removed=100_000, added=100_000, off=off)
    'REWRITE'
    """
    rows = weighed(touched_rows=touched_rows, touched_files=touched_files, removed=removed, added=added, merged=merged)
    rewriting, patching = (
        seconds_to_write(rows[way]) * off.get(way, 1.0) for way in (Strategy.REWRITE, Strategy.PATCH)
    )
    return Strategy.PATCH if rewriting - patching >= _LEAST_SAVED and patching < rewriting / 2 else Strategy.REWRITE


def seconds_to_write(rows: int) -> float:
    """About how long it takes to write rows."""
    return _START + rows * _PER_MILLION / 1e6


def weighed(*, touched_rows: int, touched_files: int, removed: int, added: int, merged: int = 0) -> dict[Strategy, int]:
    """About how many rows either way would write; ``merged`` are those of files that a patch rewrites on the way."""
    return {
        Strategy.REWRITE: touched_rows - removed + added,
        Strategy.PATCH: removed + added + merged + touched_files * _VECTOR_ROWS,
    }
