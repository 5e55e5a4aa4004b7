"""A file that grows past what can be read in one sitting has more than one subject."""

from __future__ import annotations

from pathlib import Path

import penstock

MOST_LINES = 500


def test_no_file_is_too_long() -> None:
    files = Path(penstock.__file__).parent.rglob("*.py")
    assert [str(file) for file in files if len(file.read_text().splitlines()) > MOST_LINES] == []
