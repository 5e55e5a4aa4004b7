"""The tables of TPC-H: generated as Parquet by tpchgen-cli, then loaded into tables of a Penstock warehouse."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

import penstock

TABLES: dict[str, str] = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": """s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING,
        s_acctbal DECIMAL(15,2), s_comment STRING""",
    "customer": """c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING,
        c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING""",
    "part": """p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,
        p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING""",
    "partsupp": """ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2),
        ps_comment STRING""",
    "orders": """o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2),
        o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING""",
    "lineitem": """l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT,
        l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2),
        l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE,
        l_shipinstruct STRING, l_shipmode STRING, l_comment STRING""",
}

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


def generate(directory: Path, scale: float) -> Path:
    """Write the tables at a scale factor as Parquet files, unless they are there already."""
    files = directory / f"sf{scale:g}"
    if not (files / "lineitem.parquet").exists():
        command = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        subprocess.run([command, "parquet", "-q", "-s", f"{scale:g}", "-o", files], check=True)
    return files


def load(db: penstock.Database, files: Path, sample: bool) -> None:
    """Create the tables and append the rows of the files, or a sample of the orders and their lines."""
    sampled = _sample(db, files) if sample else {}
    for name, columns in TABLES.items():
        db.sql(f"CREATE TABLE {name} ({columns})")
        rows = sampled[name] if name in sampled else pq.read_table(files / f"{name}.parquet")
        write_deltalake(db._catalog.world().tables[name].path, rows, mode="append")


def _sample(db: penstock.Database, files: Path) -> dict[str, pa.Table]:
    names = ("orders", "lineitem", "part")
    frames = {name: db.spark.read.parquet(str(files / f"{name}.parquet")) for name in names}
    kept = db.spark.createDataFrame(db.spark.sql(SAMPLE, **frames).toArrow())
    orders = frames["orders"].join(kept, frames["orders"]["o_orderkey"] == kept["kept"], "left_semi")
    lines = frames["lineitem"].join(kept, frames["lineitem"]["l_orderkey"] == kept["kept"], "left_semi")
    return {"orders": orders.toArrow(), "lineitem": lines.toArrow()}
