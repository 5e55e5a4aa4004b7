"""Names that belong together, told bit by bit: each join takes next to no time, however many there are already."""

from __future__ import annotations


class Sets:
    """
    >>> sets = Sets()
    >>> sets.join(["a", "b"]), sets.join(["c"]), sets.join(["d", "b"])
    (None, None, None)
    >>> sets.of("d") == sets.of("a"), sets.of("c") == sets.of("a")
    (True, False)
    """

    def __init__(self) -> None:
        self._leader: dict[str, str] = {}

    def join(self, names: list[str]) -> None:
        """All of these are one set, and so is what each was with before."""
        for name in names:
            self._leader[self.of(name)] = self.of(names[0])

    def of(self, name: str) -> str:
        """A name that stands for the set, the same for all in it."""
        leader = self._leader
        while (above := leader.setdefault(name, name)) != name:
            leader[name] = name = leader.setdefault(above, above)
        return name
