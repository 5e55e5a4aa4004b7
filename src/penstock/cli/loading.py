"""What a command need not load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _NotNow:
    """Finds no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def without_pandas() -> None:
    """Load Arrow, and let it find no pandas.

    It looks for pandas, once, when the first array is made of a list, and loading that takes longer than loading
    Arrow. Only a process of ours may do so: Arrow then takes a Series for any list. Whoever asks for pandas by name
    afterwards, as PySpark does, finds it.
    """
    if "pandas" in sys.modules:
        return
    finder = _NotNow()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
