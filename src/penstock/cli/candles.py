"""Candlesticks in a terminal: two steps of height to a line, so that forty bars of prices fit beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

_EMPTY, _WICK, _BODY = 0, 1, 2
# By the upper and the lower half of a character.
_GLYPHS = {
    (_EMPTY, _EMPTY): " ", (_WICK, _EMPTY): "╵", (_EMPTY, _WICK): "╷", (_WICK, _WICK): "│", (_BODY, _EMPTY): "╹",
    (_EMPTY, _BODY): "╻", (_BODY, _BODY): "┃", (_WICK, _BODY): "╽", (_BODY, _WICK): "╿",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar; ``label`` is its time, as it is to be shown."""

    label: str
    open: float
    high: float
    low: float
    close: float


def draw(bars: Sequence[Bar], height: int = 10) -> Text:
    """The bars, oldest first, green where the price rose and red where it fell, with prices and times at the edges.

    >>> up = Bar(label="09:30", open=1, high=4, low=1, close=3)
    >>> down = Bar(label="09:31", open=3, high=3, low=1, close=1)
    >>> print(draw([up, down], height=2).plain)
          4.00 ╽╻
          1.00 ┃┃
               09:30 to 09:31
    """
    if not bars:
        return Text("no bars yet", style="dim")
    top, bottom = max(bar.high for bar in bars), min(bar.low for bar in bars)
    steps = height * 2
    columns = [_column(bar, bottom, top, steps) for bar in bars]
    picture = Text()
    for line in range(height):
        price = top - (top - bottom) * line / max(height - 1, 1)
        edge = f"{price:>10.2f} " if line in (0, height // 2, height - 1) else " " * 11
        picture.append(edge, style="dim")
        for bar, column in zip(bars, columns, strict=True):
            upper, lower = column[steps - 1 - 2 * line], column[steps - 2 - 2 * line]
            picture.append(_GLYPHS[upper, lower], style="green" if bar.close >= bar.open else "red")
        picture.append("\n")
    return picture.append(f"{' ' * 11}{bars[0].label} to {bars[-1].label}", style="dim")


def _column(bar: Bar, bottom: float, top: float, steps: int) -> list[int]:
    """What each step of height shows, from the bottom up. A body is at least one step, so that no bar is lost."""

    def step(price: float) -> int:
        return min(int((price - bottom) / (top - bottom) * steps), steps - 1) if top > bottom else steps // 2

    column = [_EMPTY] * steps
    column[step(bar.low) : step(bar.high) + 1] = [_WICK] * (step(bar.high) - step(bar.low) + 1)
    low, high = sorted((step(bar.open), step(bar.close)))
    column[low : high + 1] = [_BODY] * (high - low + 1)
    return column
