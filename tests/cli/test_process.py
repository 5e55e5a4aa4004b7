"""The command as a process of its own: what it loads, how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import penstock

MAIN = "from penstock.cli.main import main; main()"


def process(*arguments: object, code: str = MAIN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_looking_at_the_catalog_loads_neither_spark_nor_delta(stocked: Path) -> None:
    code = """if True:
        import sys
        from penstock.cli.main import app
        for command in (["status"], ["graph"], ["history"], ["status", "--json"]):
            assert app(["-w", sys.argv[1], *command], standalone_mode=False) is None
        heavy = {"pyspark", "py4j", "delta", "deltalake", "pandas", "pyarrow", "prompt_toolkit"} & set(sys.modules)
        print("loaded:", sorted(heavy))
    """
    done = process(stocked, code=code)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_a_command_loads_no_pandas_and_who_asks_for_it_finds_it(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from penstock.cli.main import app
        rows = "CREATE TABLE t (id INT); INSERT INTO t VALUES (1), (2); SELECT * FROM t"
        app(["-w", sys.argv[1], "sql", rows], standalone_mode=False)
        app(["-w", sys.argv[1], "refresh"], standalone_mode=False)
        print("loaded:", sorted({"pandas", "pydantic"} & set(sys.modules)))
        import pyarrow
        print(pyarrow.table({"x": [1.5, None]}).to_pandas()["x"].isna().tolist())
    """
    done = process(tmp_path, code=code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["loaded: []", "[False, True]"]


def without_java(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command where no Java is to be found: whatever would start it fails."""
    nowhere = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "none")}
    return subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)], capture_output=True, text=True, check=False, env=nowhere
    )


def test_small_work_starts_no_java(tmp_path: Path) -> None:
    place = tmp_path / "warehouse"
    with penstock.connect(place) as db:
        db.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2), at TIMESTAMP)")
        db.sql("INSERT INTO orders VALUES (1, 'eu', 10, '2024-01-01 00:00:01')")
        totals = "SELECT UPPER(region) AS region, SUM(amount) AS total, MAX(at) AS last FROM orders GROUP BY region"
        db.sql(f"CREATE MATERIALIZED VIEW totals AS {totals}")
        db.sql("CREATE MATERIALIZED VIEW large AS SELECT region, total FROM totals WHERE total > 15")
    again = without_java(tmp_path, "-w", place, "refresh", "--json")
    assert again.returncode == 0, again.stderr
    assert {view["action"] for view in json.loads(again.stdout)["views"]} == {"NO_DATA"}
    insert = "INSERT INTO orders VALUES (2, 'eu', 7.25, '2024-01-01 00:00:02'), (3, NULL, NULL, NULL)"
    done = without_java(tmp_path, "-w", place, "sql", insert)
    assert (done.returncode, done.stdout) == (0, "INSERT: 2 rows\n"), done.stderr
    refreshed = without_java(tmp_path, "-w", place, "refresh", "--json")
    assert refreshed.returncode == 0, refreshed.stderr
    assert [(view["name"], view["action"]) for view in json.loads(refreshed.stdout)["views"]] == [
        ("totals", "INCREMENTAL"), ("large", "INCREMENTAL"),
    ]  # fmt: skip
    rows = without_java(tmp_path, "-w", place, "sql", "--json", "SELECT region, total FROM totals WHERE total > 1")
    assert json.loads(rows.stdout) == [{"region": "EU", "total": "17.25"}], rows.stderr
    shown = without_java(tmp_path, "-w", place, "sql", "SELECT * FROM large")
    assert shown.stdout.splitlines()[1].split() == ["EU", "17.25"], shown.stderr
    for change, said in {
        "CREATE TABLE refunds (id INT, amount DECIMAL(10,2))": "table refunds created\n",
        "INSERT INTO refunds VALUES (1, 2)": "INSERT: 1 row\n",
        "UPDATE orders SET amount = amount + 1 WHERE id = 2": "UPDATE: 1 row\n",
        "DELETE FROM orders WHERE region IS NULL": "DELETE: 1 row\n",
    }.items():
        done = without_java(tmp_path, "-w", place, "sql", change)
        assert (done.returncode, done.stdout) == (0, said), done.stderr
    without_java(tmp_path, "-w", place, "refresh")
    rows = without_java(tmp_path, "-w", place, "sql", "--json", "SELECT region, total FROM totals")
    assert json.loads(rows.stdout) == [{"region": "EU", "total": "18.25"}], rows.stderr
    started = without_java(
        tmp_path, "-w", place, "sql", "SELECT region, JAVA_METHOD('java.util.UUID', 'randomUUID') AS u FROM large"
    )
    assert started.returncode == 1, "this cannot be done without Spark"


def test_an_error_is_a_message_and_not_a_traceback(tmp_path: Path) -> None:
    done = process("status", "-w", tmp_path / "none")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: there is no warehouse")
    assert "Traceback" not in done.stderr


def test_a_wrong_option_is_a_usage_error() -> None:
    done = process("status", "--wherehouse", "x")
    assert done.returncode == 2
    assert "--wherehouse" in done.stderr


def test_the_version() -> None:
    assert process("--version").stdout == f"penstock {penstock.__version__}\n"


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    waiting_for_input = """if True:
        import io, signal, sys
        from penstock.cli.main import main
        class Nobody(io.StringIO):
            def read(self, *_):
                print("waiting", flush=True)
                signal.pause()
        sys.stdin = Nobody()
        main()
    """
    command = [sys.executable, "-c", waiting_for_input, "sql", "-w", str(tmp_path / "w")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130
    assert errors == "interrupted\n"


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_while_spark_starts_ends_it_at_once_and_is_in_the_history(stocked: Path, tmp_path: Path) -> None:
    shutil.copytree(stocked, warehouse := tmp_path / "w")
    command = [sys.executable, "-c", MAIN, "refresh", "--full", "Notes", "-w", str(warehouse)]
    environment = {**os.environ, "PENSTOCK_SPARK_LOG": "1"}
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    assert running.stderr is not None
    while not (said := running.stderr.readline()).startswith(":: loading settings"):
        assert said, "the JVM looks for Delta's jar before it can be talked to"
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does, to all of them
    _, errors = running.communicate()
    assert running.returncode == 130
    assert errors.splitlines()[-1] == "interrupted"
    assert "Traceback" not in errors
    for _ in range(1_000):  # what started the JVM needs a moment to end
        if not _is_there(running.pid):
            break
        time.sleep(0.05)
    assert not _is_there(running.pid), "no JVM is left"
    with penstock.connect(warehouse) as db:
        newest = db.history("Notes", 1)[0]
        assert (newest.status, newest.action, newest.reason) == ("FAILED", "SKIP", "INTERRUPTED")


def test_a_reader_that_leaves_early_is_no_error(stocked: Path) -> None:
    piped = f"{sys.executable} -c '{MAIN}' history --json -w {stocked} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", piped], capture_output=True, text=True, check=False)
    assert done.stderr == ""
