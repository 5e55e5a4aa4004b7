"""Whether two values are one and the same, as rows of a Z-set are told apart by: the rule for ``Same``."""

from __future__ import annotations

import pyarrow as pa

from penstock.frames.arrow.expressions.types import Value, widest_of
from penstock.frames.arrow.expressions.types import cast as converted
from penstock.frames.arrow.expressions.values import Rows, rule, spread, value
from penstock.frames.arrow.groups import codes
from penstock.sql.trees import Same


@rule(Same)
def _same(node: Same, rows: Rows) -> Value:
    sides = [spread(value(side, rows), rows.count) for side in (node.left, node.right)]
    kind = widest_of([side.type for side in sides])
    number = codes(pa.concat_arrays([converted(side, kind) for side in sides]))
    return pa.array(number[: rows.count] == number[rows.count :])
