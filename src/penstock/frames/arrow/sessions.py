"""Sessions of rows on the driver: which of them Spark's ``session_window`` puts together, and from when to when.

Each row opens a session at its time that lasts for the gap. Rows of equal keys whose sessions meet, be it in one
moment only, are of one session, which lasts until the gap after its last row is over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.frames.arrow.groups import Groups, Numbers, normalised
from penstock.frames.frame import NotHere


def sessions_of(times: pa.Array, keys: Sequence[pa.Array], gap: int) -> tuple[Numbers, pa.Array]:
    """The rows that are of a session, and the session of each: a struct of ``start`` and ``end``.

    ``times`` are timestamps, with a zone or without, and ``gap`` is in microseconds. A row without a time is of no
    session, and with a gap of nothing or less no row is.
    """
    if not pa.types.is_timestamp(times.type) or times.type.unit != "us":
        raise NotHere
    there = times.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(there) if gap > 0 else np.zeros(0, np.int64)
    moment = times.fill_null(0).cast(pa.int64()).to_numpy()[rows]
    if len(moment) and int(moment.max()) + gap >= 2**63:
        raise NotHere("a session that never ends")
    by = pa.array(rows, pa.int64())
    starts, ends = _edges(moment, Groups([normalised(key).take(by) for key in keys], len(rows)).of, gap)
    edges = [pa.array(edge, pa.int64()).cast(times.type) for edge in (starts, ends)]
    return rows, pa.StructArray.from_arrays(edges, names=["start", "end"])


def _edges(moment: Numbers, group: Numbers, gap: int) -> tuple[Numbers, Numbers]:
    """When the session of each row begins and ends."""
    order = np.lexsort((moment, group))
    time, of = moment[order], group[order]
    opens = np.ones(len(order), np.bool_)
    opens[1:] = (of[1:] != of[:-1]) | (time[1:] - time[:-1] > gap)
    first, last = np.flatnonzero(opens), np.flatnonzero(np.append(opens[1:], True)[: len(order)])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(opens) - 1
    return time[first][number], time[last][number] + gap
