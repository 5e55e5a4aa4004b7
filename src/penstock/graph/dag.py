"""A small directed acyclic graph of names: who reads whom."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping
from functools import cached_property


class CycleError(ValueError):
    """The edges close a circle; ``path`` walks it once."""

    def __init__(self, path: list[str]):
        super().__init__(" -> ".join(path))
        self.path = path


class Dag:
    """Names, and for each the names that it reads.

    >>> Dag({"b": ["a"], "c": ["a", "b"]}).order()
    ['a', 'b', 'c']
    """

    def __init__(self, reads: Mapping[str, Iterable[str]]):
        self._reads: dict[str, tuple[str, ...]] = {}
        self._readers: dict[str, list[str]] = {}
        for name, inputs in reads.items():
            self._reads[name] = tuple(dict.fromkeys(inputs))
            self._readers.setdefault(name, [])
        for name, inputs in list(self._reads.items()):
            for read in inputs:
                self._reads.setdefault(read, ())
                self._readers.setdefault(read, []).append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._reads

    def inputs(self, name: str) -> tuple[str, ...]:
        return self._reads.get(name, ())

    def readers(self, name: str) -> tuple[str, ...]:
        return tuple(self._readers.get(name, ()))

    def order(self, names: Iterable[str] | None = None) -> list[str]:
        """All names (or these), inputs before readers, equal ones in the order in which they were given."""
        if names is None:
            return list(self._places)
        return sorted({name for name in names if name in self._places}, key=self._places.__getitem__)

    @cached_property
    def _places(self) -> dict[str, int]:
        """All names in order, each with its place in it: a few names are then ordered without a walk over all."""
        try:
            ordered = graphlib.TopologicalSorter(self._reads).static_order()
            return {name: place for place, name in enumerate(ordered)}
        except graphlib.CycleError as problem:
            raise CycleError(list(reversed(problem.args[1]))) from None

    def ancestors(self, names: Iterable[str]) -> set[str]:
        """Everything that these names read, directly or through others; not the names themselves."""
        return self._reach(names, self._reads)

    def descendants(self, names: Iterable[str]) -> set[str]:
        """Everything that reads these names, directly or through others; not the names themselves."""
        return self._reach(names, self._readers)

    @staticmethod
    def _reach(names: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
        found: set[str] = set()
        pending = [step for name in names for step in edges.get(name, ())]
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending.extend(edges.get(name, ()))
        return found
