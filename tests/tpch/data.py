"""The tables of TPC-H in a Penstock warehouse: all rows of a scale factor, or some orders and their lines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import penstock
from penstock.bench.tpch import data
from penstock.bench.tpch.data import generate

__all__ = ["generate", "load"]

# The orders of the small run: a share of all, and those with lines that the rarer conditions of Q8, Q17, Q19 and Q20
# ask for, so that few rows give every query something to do.
SAMPLE = """
    SELECT o_orderkey AS kept FROM {orders} WHERE o_orderkey % 29 = 0
    UNION
    SELECT l_orderkey FROM {lineitem} JOIN {part} ON l_partkey = p_partkey
    WHERE (p_name LIKE 'forest%' AND YEAR(l_shipdate) = 1994)
      OR (p_type = 'ECONOMY ANODIZED STEEL' AND YEAR(l_shipdate) IN (1995, 1996))
      OR (p_brand = 'Brand#23' AND p_container = 'MED BOX')
      OR (p_brand IN ('Brand#12', 'Brand#23', 'Brand#34') AND p_size <= 15 AND l_quantity <= 30
        AND l_shipmode = 'AIR' AND l_shipinstruct = 'DELIVER IN PERSON')
"""


def load(db: penstock.Database, files: Path, sample: bool) -> None:
    """Create the tables and append the rows of the files, or a sample of the orders and their lines."""
    data.load(db, files, _sample(db, files) if sample else None)


def _sample(db: penstock.Database, files: Path) -> dict[str, pa.Table]:
    names = ("orders", "lineitem", "part")
    frames = {name: db.spark.read.parquet(str(files / f"{name}.parquet")) for name in names}
    kept = db.spark.createDataFrame(db.spark.sql(SAMPLE, **frames).toArrow())
    orders = frames["orders"].join(kept, frames["orders"]["o_orderkey"] == kept["kept"], "left_semi")
    lines = frames["lineitem"].join(kept, frames["lineitem"]["l_orderkey"] == kept["kept"], "left_semi")
    return {"orders": orders.toArrow(), "lineitem": lines.toArrow()}
