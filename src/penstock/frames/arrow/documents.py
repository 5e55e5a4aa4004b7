"""The JSON texts of a group joined in an order, on the driver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.groups import Groups, Numbers, ranks, together
from penstock.frames.frame import NotHere

_FAR = np.iinfo(np.int64).max


def joined_texts(texts: pa.Array, keys: Sequence[tuple[pa.Array, exp.Ordered]], groups: Groups) -> pa.Array:
    """The texts of each group but NULL, joined by commas in the order of the keys; NULL for none."""
    if not pa.types.is_string(texts.type):
        raise NotHere
    there = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    of, taken = groups.of[there], pa.array(there)
    found = there[ordered(of, [(values.take(taken), key) for values, key in keys])]
    ends = np.cumsum(np.bincount(of, minlength=groups.count))
    joined = comma_joined(texts.take(pa.array(found)), np.concatenate([[0], ends]))
    some = np.bincount(of, minlength=groups.count) > 0
    return pc.if_else(pa.array(some), joined, pa.scalar(None, pa.string()))


def ordered(of: Numbers, keys: Sequence[tuple[pa.Array, exp.Ordered]]) -> Numbers:
    """The places of rows, group by group, in the order of the keys; the later ones are asked only where rows tie."""
    ranked = [of.astype(np.int64)]
    for values, key in keys:
        ranked.append(_ranked(values, key))
        if len(np.unique(together(ranked))) == len(of):
            break
    return np.lexsort(ranked[::-1])


def _ranked(values: pa.Array, key: exp.Ordered) -> Numbers:
    """Numbers in the order that a key asks for: NULL is first going up and last going down, if nothing else is said."""
    down = bool(key.args.get("desc"))
    nulls_first = key.args.get("nulls_first")
    rank = ranks(values)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    first = (not down) if nulls_first is None else bool(nulls_first)
    return np.where(missing, -_FAR if first else _FAR, -rank if down else rank)


def comma_joined(elements: pa.Array, offsets: Numbers) -> pa.Array:
    """Texts in lists that begin and end at these places, each list as one text."""
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements)
    return pc.binary_join(lists, ",")
