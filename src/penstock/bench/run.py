"""Running workloads, and keeping their results as files: one JSON a workload."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import __version__
from penstock.bench.measure import Result

if TYPE_CHECKING:
    from penstock.bench.stage import Bench
    from penstock.bench.workloads import Workload


def run(workload: Workload, bench: Bench) -> Result:
    """Run one workload; a view that differs from its recomputation is an error."""
    bench.left_out.clear()
    cells = workload.run(bench)
    return Result(
        workload=workload.name, title=workload.title, scale=bench.scale, repeat=bench.repeat, machine=machine(),
        cells=cells, goals=workload.goals(cells), left_out=dict(bench.left_out), setup=bench.setup,
    )  # fmt: skip


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    return {
        "cores": str(os.cpu_count() or 1),
        "memory": _memory(),
        "Python": platform.python_version(),
        "Spark": version("pyspark"),
        "Delta Lake": version("delta-spark"),
        "Penstock": __version__,
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError):  # not every system says
        return "unknown"


def save(result: Result, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{result.workload}.json"
    file.write_text(json.dumps(result.document(), indent=1) + "\n")
    return file


def saved(directory: Path, names: Iterable[str]) -> list[Result]:
    """The results that a directory holds, in the order of the names; or that of one file."""
    files = [directory] if directory.is_file() else [directory / f"{name}.json" for name in names]
    return [Result.from_document(json.loads(file.read_text())) for file in files if file.exists()]
