"""Lists of a group's values on the driver: COLLECT_LIST, COLLECT_SET, and ARRAY_SORT, which settles their order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames.arrow.groups import Groups, Numbers, codes, has_floats, normalised, ranks, together
from penstock.frames.frame import NotHere


def list_of(values: pa.Array, groups: Groups) -> pa.Array:
    """All values of each group but NULL, in the order of rows."""
    there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    return _listed(values, there, groups)


def set_of(values: pa.Array, groups: Groups) -> pa.Array:
    """The distinct values of each group but NULL. Their order is left open, as it is by Spark.

    Equal floats that are not the same are another matter in every version of Spark.
    """
    if has_floats(values.type) and not codes_are_ranks(values):
        raise NotHere("NaN or -0.0 in a set")
    there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    return _listed(values, there[first_ones(groups.of[there], [values.take(pa.array(there))])], groups)


def codes_are_ranks(values: pa.Array) -> bool:
    """Whether no float is NaN or -0.0."""
    if pa.types.is_struct(values.type):
        return all(codes_are_ranks(pc.struct_field(values, [i])) for i in range(values.type.num_fields))
    if not pa.types.is_floating(values.type):
        return True
    number = values.drop_null().to_numpy()
    return not (np.isnan(number).any() or (np.signbit(number) & (number == 0)).any())


def first_ones(of: Numbers, columns: list[pa.Array]) -> Numbers:
    """The places of the first of each value in each group, in the order of rows."""
    number = together([of, *(codes(normalised(values)) for values in columns)])
    return np.sort(np.unique(number, return_index=True)[1])


def _listed(values: pa.Array, places: Numbers, groups: Groups) -> pa.Array:
    of = groups.of[places]
    elements = values.take(pa.array(places[np.argsort(of, kind="stable")], pa.int64()))
    ends = np.cumsum(np.bincount(of, minlength=groups.count))
    return _list_array(np.concatenate([[0], ends]), elements)


def _list_array(offsets: Numbers, elements: pa.Array) -> pa.Array:
    kind = pa.list_(pa.field("element", elements.type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=kind)


def sorted_lists(lists: pa.Array, *, down: bool = False, nulls_first: bool = False) -> pa.Array:
    """Lists with their elements in order, as those of ARRAY_SORT and SORT_ARRAY; equal ones stay as they are."""
    if not pa.types.is_list(lists.type):
        raise NotHere
    elements, parents = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    rank = ranks(elements)
    far = np.iinfo(np.int64).max
    order = np.lexsort((np.where(rank == 0, -far if nulls_first else far, -rank if down else rank), parents))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    found = _list_array(np.concatenate([[0], np.cumsum(lengths)]), elements.take(pa.array(order, pa.int64())))
    if not lists.null_count:
        return found
    return found.take(pa.array(np.arange(len(lists)), mask=lists.is_null().to_numpy(zero_copy_only=False)))
