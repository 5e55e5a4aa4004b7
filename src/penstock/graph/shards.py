"""Sharing views among schedulers: what advances together, and as far as possible what reads each other, is one's.

Any two schedulers that look at the same definitions come to the same result without a word to each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256

from penstock.errors import DefinitionError
from penstock.graph.dag import Dag
from penstock.graph.groups import Group
from penstock.graph.sets import Sets

_PIECES = 8
"""What reads each other is cut where it would be more than so small a piece of a shard, or shards would be uneven."""


@dataclass(frozen=True)
class Shard:
    """One of so many; the first is 1.

    >>> Shard.read("2/8")
    Shard(number=2, of=8)
    """

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise DefinitionError(
                f"{text!r} is no shard. Write which one of how many, such as '2/8': the second of eight."
            )
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def sharded(graph: Dag, views: Collection[str], groups: Iterable[Group], count: int) -> dict[str, Shard]:
    """Whose each view is, of so many schedulers.

    >>> graph = Dag({"a": ["t"], "b": ["a"], "d": ["t"]})
    >>> {key: str(shard) for key, shard in sharded(graph, {"a", "b", "d"}, [], 2).items()}
    {'a': '1/2', 'd': '2/2', 'b': '1/2'}
    """
    sets = Sets()
    for group in groups:
        sets.join(list(group.members))
    order = [name for name in graph.order() if name in views]
    size = Counter(sets.of(name) for name in order)
    most = max(len(views) // (count * _PIECES), 2)
    for name in order:
        for read in graph.inputs(name):
            one, other = sets.of(name), sets.of(read)
            if read in views and one != other and size[one] + size[other] <= most:
                both = size.pop(one) + size.pop(other)
                sets.join([read, name])
                size[sets.of(name)] = both
    first: dict[str, str] = {}
    for name in sorted(order):
        first.setdefault(sets.of(name), name)
    return {name: Shard(_number(first[sets.of(name)]) % count + 1, count) for name in order}


def _number(name: str) -> int:
    """A number that is the same in every process, and as good as random."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")
