"""Options of a view as Python gives them: checked, and in the words of the statements."""

from __future__ import annotations

import re
from datetime import timedelta

from penstock.engine.settings import checked
from penstock.errors import DefinitionError
from penstock.sql import statements as s
from penstock.sql.intervals import microseconds
from penstock.sql.names import QualifiedName
from penstock.vocabulary import Policy

_PART = r"(`(?:[^`]|``)+`|[^`.\s]+)"


def plain_name(name: str) -> str:
    if not re.fullmatch(r"[^`.\s]+", name):
        raise DefinitionError(f"{name!r} cannot be a name: it must not be empty or contain dots, spaces or backticks.")
    return name


def relation_name(name: str, current: str) -> str:
    """The name of a new table or view, in the schema that it says or in the current one."""
    if not re.fullmatch(rf"{_PART}(\.{_PART})*", name):
        raise DefinitionError(
            f"{name!r} cannot be a name: write name, or schema.name, and what has dots, spaces or backticks in it in "
            "`backticks`."
        )
    return str(QualifiedName.read(name, current))


def emission(emit: str, every: str | None) -> tuple[str, int | None]:
    kinds = (s.ON_UPDATE, s.AFTER_WATERMARK, s.PERIODICALLY)
    if emit.upper() not in kinds:
        raise DefinitionError(f"emit is one of {', '.join(map(repr, kinds))}, not {emit!r}.")
    if (emit.upper() == s.PERIODICALLY) != (every is not None):
        raise DefinitionError(f"emit={s.PERIODICALLY!r} goes with emit_every='5 seconds', say, and only with it.")
    return emit.upper(), length("emit_every", every)


def length(name: str, text: str | None) -> int | None:
    micros = None if text is None else microseconds(text)
    if text is not None and micros is None:
        raise DefinitionError(f"{name} is a length of time such as '5 seconds', not {text!r}.")
    return micros


def patience(wait: bool | str) -> timedelta:
    """How long to wait for another process: as long as it takes, a length of time, or not at all."""
    if isinstance(wait, bool):
        return timedelta.max if wait else timedelta(0)
    return timedelta(microseconds=length("wait", wait) or 0)


def choice(name: str, value: str | None) -> str | None:
    return None if value is None else checked(name, value)[1]


def policy_of(text: str) -> Policy:
    if text.upper() not in list(Policy):
        raise DefinitionError(f"the policy {text!r} is unknown. Choose one of {', '.join(Policy)}.")
    return Policy(text.upper())


def lag_of(text: str | None, *, none: bool = False) -> int | str | None:
    """A target lag: microseconds, or DOWNSTREAM; NONE where there may be one that is to go."""
    if text is None or text.upper() == s.DOWNSTREAM or (none and text.upper() == s.NONE):
        return text and text.upper()
    micros = microseconds(text)
    if not micros:
        raise DefinitionError(f"target_lag is a length of time such as '5 minutes', or 'DOWNSTREAM', not {text!r}.")
    return micros
