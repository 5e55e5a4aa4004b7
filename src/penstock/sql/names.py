"""What tables and views are called: a schema and a name, how both are written, and what tells two of them apart.
What a catalog of the Spark session has is called by three parts, with that catalog before them.

Whatever reads a name from a user, or writes one for a user or for Spark, does it here. What the catalog and the plan
know a relation by is its ``key``, a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from penstock.errors import NotSupportedError, SqlError

DEFAULT = "default"
"""The schema of names that say none. What is in it is written without it."""
SYSTEM = "penstock"
"""The schema of what tells of Penstock itself: ``penstock.views``, ``penstock.history``, .."""
OWN = f"{SYSTEM}."
"""What the keys of those begin with."""

FORMATS = frozenset("delta parquet csv json text orc avro xml binaryfile iceberg".split())
"""What Spark reads a path as, where it stands before that: delta.`/data/orders`."""

FILES = FORMATS - {"delta"}
"""Those of which no log tells what changed."""

OF_SPARK = FORMATS | {"global_temp", "system"}
"""What stands before a name that means something of Spark's own: a file, a temporary view, a function."""

_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^.`][^.]*)", re.DOTALL)
_PLAIN = re.compile(r"[^.`][^.]*", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, order=True)
class QualifiedName:
    """The name of a table or view.

    >>> name = QualifiedName.read("Gold.`odd name`")
    >>> name.schema, name.name, str(name), name.key
    ('Gold', 'odd name', 'Gold.`odd name`', 'gold.`odd name`')
    >>> str(QualifiedName.read("default.Totals")), str(QualifiedName.read("totals", "gold"))
    ('Totals', 'gold.totals')
    >>> name = QualifiedName.read("spark_catalog.Default.Orders")
    >>> name.catalog, str(name), name.key
    ('spark_catalog', 'spark_catalog.Default.Orders', 'spark_catalog.default.orders')
    """

    schema: str
    name: str
    catalog: str = ""
    """Of the Spark session; empty for what has its name here."""

    @classmethod
    def read(cls, text: str, current: str = DEFAULT) -> QualifiedName:
        """A name as somebody wrote it; one without a schema is in the ``current`` one."""
        return cls.of(list(_parts(text)), text, current)

    @classmethod
    def of(cls, parts: list[str], text: str, current: str = DEFAULT) -> QualifiedName:
        """A name of these parts; ``text`` is how it was written."""
        if len(parts) > 3:
            raise NotSupportedError(
                f"{text!r}: a name has two parts, schema.name, or three for what is in a catalog of the Spark session: "
                "catalog.schema.name. Register a Delta table by its path: CREATE TABLE name LOCATION 'path'."
            )
        if len(parts) == 3:
            return cls(parts[1], parts[2], parts[0])
        schema, name = parts if len(parts) == 2 else (current, parts[0])
        return cls(DEFAULT if schema.lower() == DEFAULT else schema, name)

    def __str__(self) -> str:
        """As it is shown: ``read`` gives it again."""
        if self.catalog:
            return ".".join(map(part, self.parts))
        if self.schema == DEFAULT:
            return self.name if _PLAIN.fullmatch(self.name) else _quoted(self.name)
        return f"{part(self.schema)}.{part(self.name)}"

    @property
    def key(self) -> str:
        """What tells it from all other names, which do not depend on case."""
        return str(QualifiedName(self.schema.lower(), self.name.lower(), self.catalog.lower()))

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.catalog, self.schema, self.name) if self.catalog else (self.schema, self.name)

    @property
    def schema_key(self) -> str:
        """The schema here that it is in; empty for what is in a catalog of Spark's."""
        return "" if self.catalog else self.schema.lower()

    @property
    def sql(self) -> str:
        """As Spark SQL text that means it, whatever is in it.

        >>> QualifiedName("gold", "a`b").sql, QualifiedName(DEFAULT, "totals").sql
        ('`gold`.`a``b`', '`totals`')
        """
        if self.schema == DEFAULT and not self.catalog:
            return _quoted(self.name)
        return quoted_parts(self.parts)

    def beside(self, name: str) -> QualifiedName:
        """Another name in the same schema."""
        return QualifiedName(self.schema, name, self.catalog)


@lru_cache(maxsize=20_000)
def key_of(text: str) -> str:
    """The key of what a text names.

    >>> key_of("Totals"), key_of("Default.Totals"), key_of("GOLD.Totals"), key_of("`a.b`")
    ('totals', 'totals', 'gold.totals', '`a.b`')
    """
    return QualifiedName.read(text).key


def is_path(text: str) -> bool:
    """Whether somebody gives a path for a name.

    >>> is_path("/data/orders"), is_path("file:///data/a.b"), is_path("gold.`a/b`")
    (True, True, False)
    """
    return "/" in text and "`" not in text


def is_outside(text: str) -> bool:
    """Whether a name may mean something in Spark alone: three parts, or a format and the path of files.

    >>> is_outside("lake.gold.orders"), is_outside("parquet.`/data/a`"), is_outside("gold.orders"), is_outside("/a/b")
    (True, True, False, False)
    """
    if is_path(text):
        return False
    name = QualifiedName.read(text)
    return bool(name.catalog) or (name.schema.lower() in FILES and "/" in name.name)


def path_of(text: str) -> str | None:
    """The place of a Delta table that is told by it; None of a name.

    >>> path_of("delta.`/data/Orders`"), path_of("gold.orders"), path_of("parquet.`/data/a`")
    ('/data/Orders', None, None)
    """
    if "/" not in text or is_path(text):
        return None
    name = QualifiedName.read(text)
    return name.name if name.schema.lower() == "delta" and "/" in name.name and not name.catalog else None


def sql_of(text: str) -> str:
    """What a text names, as Spark SQL."""
    return QualifiedName.read(text).sql


def part(text: str) -> str:
    """A schema, or a part of a name, as it is shown.

    >>> part("gold"), part("2026"), part("a`b")
    ('gold', '`2026`', '`a``b`')
    """
    return text if _WORD.fullmatch(text) else _quoted(text)


def parts_of(text: str) -> list[str]:
    """The parts of a name, however many.

    >>> parts_of("spark_catalog.gold.`a.b`"), quoted_parts(["a", "b`c"])
    (['spark_catalog', 'gold', 'a.b'], '`a`.`b``c`')
    """
    return list(_parts(text))


def quoted_parts(parts: Iterable[str]) -> str:
    """A name of any parts as Spark SQL."""
    return ".".join(map(_quoted, parts))


def _quoted(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _parts(text: str) -> Iterator[str]:
    place = 0
    while True:
        found = _PART.match(text, place)
        place = -1 if found is None else found.end()
        if found is None or text[place : place + 1] not in ("", "."):
            raise SqlError(f"{text!r} is no name: write name, or schema.name, and what is odd in `backticks`.")
        yield found["plain"] or found["quoted"].replace("``", "`")
        if place == len(text):
            return
        place += 1
