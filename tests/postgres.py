"""A PostgreSQL server of the tests' own: a fresh cluster in a temporary directory, reached over a socket there."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def server_programs() -> str | None:
    """The directory of ``initdb`` and ``postgres``; distributions keep it off the PATH."""
    found = shutil.which("initdb")
    places = [os.path.dirname(os.path.realpath(found))] if found else sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return places[-1] if places else None


@contextmanager
def running_server() -> Iterator[str]:
    """The URL of a server that ends with the block. PostgreSQL refuses to run as root; then it runs as nobody."""
    programs = server_programs()
    assert programs is not None
    user = {"user": "nobody"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="penstock-pg-", ignore_cleanup_errors=True) as home:
        os.chmod(home, 0o777)
        data = f"{home}/data"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, **user}
        subprocess.run([f"{programs}/initdb", "-D", data, "-U", "tester", "-A", "trust", "-N"], check=True, **quiet)
        start = [f"{programs}/pg_ctl", "-D", data, "-w", "-o", f"-k {home} -c listen_addresses='' -F", "start"]
        subprocess.run(start, check=True, **quiet)
        try:
            yield f"postgresql://tester@/postgres?host={home}"
        finally:
            subprocess.run([f"{programs}/pg_ctl", "-D", data, "-m", "immediate", "stop"], check=True, **quiet)
