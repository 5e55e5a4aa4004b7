"""The tables of TPC-H: generated as Parquet by tpchgen-cli, then loaded into tables of a Penstock warehouse."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from penstock.bench.session import INSTALL
from penstock.bench.tables import table_paths
from penstock.errors import NotSupportedError

if TYPE_CHECKING:
    from penstock.database import Database

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


def generate(directory: Path, scale: float) -> Path:
    """Write the tables at a scale factor as Parquet files, unless they are there already."""
    files = directory / f"sf{scale:g}"
    if not (files / "lineitem.parquet").exists():
        command = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        if not command.exists():
            raise NotSupportedError(f"tpchgen-cli is not installed, which makes the data of TPC-H: {INSTALL}")
        subprocess.run([command, "parquet", "-q", "-s", f"{scale:g}", "-o", files], check=True)
    return files


def load(database: Database, files: Path, instead: Mapping[str, pa.Table] | None = None) -> None:
    """Create the tables and append the rows of the files, or those given instead."""
    given = instead or {}
    for name, columns in TABLES.items():
        database.sql(f"CREATE TABLE {name} ({columns})")
    paths = table_paths(database)
    for name in TABLES:
        rows = given[name] if name in given else _read(files / f"{name}.parquet")
        write_deltalake(paths[name], rows, mode="append")


def _read(file: Path) -> pa.RecordBatchReader:
    """The rows of a file, a few at a time."""
    parquet = pq.ParquetFile(file)
    return pa.RecordBatchReader.from_batches(parquet.schema_arrow, parquet.iter_batches())
