"""Pictures of results: ratios by workload, the crossover, the growth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.measure import FULL, PENSTOCK, TITLES, Cell, Result

_COLOURS = {"full": "#4c78a8", "always": "#9ecae9", "merge": "#f58518", "pipelines": "#b279a2", "duckdb": "#54a24b"}
_OWN_PICTURE = ("crossover", "growth", "large", "shell", "writes", "models", "stores")
"""Those that are not drawn among the ratios; of all but the first two there are tables only."""


def draw(results: Sequence[Result], directory: Path) -> list[Path]:
    """Draw what the results allow; the files that were written."""
    directory.mkdir(parents=True, exist_ok=True)
    pictures: list[tuple[str, list[Result], Callable[[Any, list[Result]], None]]] = [
        ("ratios", [r for r in results if r.workload not in _OWN_PICTURE and _compared(r)], _ratios),
        ("crossover", [r for r in results if r.workload == "crossover"], _crossover),
        ("growth", [r for r in results if r.workload == "growth"], _growth),
    ]
    return [_drawn(directory / f"{name}.png", chosen, picture) for name, chosen, picture in pictures if chosen]


def _drawn(file: Path, results: list[Result], picture: Callable[[Any, list[Result]], None]) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    picture(figure, results)
    figure.savefig(file, dpi=120)
    return file


def _compared(result: Result) -> list[Cell]:
    return [cell for cell in result.cells if len(cell.seconds) > 1]


def _ratios(figure: Any, results: list[Result]) -> None:
    """Bars to the right of 1 are wins. A short line is the target against recomputation."""
    bars = [(result, cell) for result in results for cell in _compared(result)]
    names = [n for n in TITLES if n != PENSTOCK and any(cell.ratio(n) for _, cell in bars)]
    figure.set_size_inches(8, 1.5 + 0.2 * len(bars) * max(len(names), 1))
    axes = figure.subplots()
    height = 0.8 / max(len(names), 1)
    for i, name in enumerate(names):
        places = [y + i * height for y in range(len(bars))]
        values = [cell.ratio(name) or 1.0 for _, cell in bars]
        axes.barh(places, [v - 1 for v in values], height, left=1, color=_COLOURS[name], label=TITLES[name])
    for y, (result, cell) in enumerate(bars):
        for goal in result.goals:
            if goal.case == cell.case and goal.bound == ">=" and TITLES[FULL] in goal.what:
                axes.plot([goal.target] * 2, [y - height / 2, y + 0.8 - height / 2], color="black", linewidth=1.5)
    axes.set_yticks([y + 0.4 - height / 2 for y in range(len(bars))])
    axes.set_yticklabels([f"{r.workload}: {c.case}" if len(r.cells) > 1 else r.workload for r, c in bars], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(
        "times as long as Penstock; left of 1 Penstock loses; black: target against recomputation", fontsize=9
    )
    axes.legend(fontsize=8)


def _crossover(figure: Any, results: list[Result]) -> None:
    axes = figure.subplots()
    for kind, cells in _lines(results[0].cells).items():
        points = [(100 * c.changed / c.rows, c.ratio(FULL)) for c in cells if c.changed and c.ratio(FULL)]
        axes.plot(*_columns(points), marker="o", label=kind)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(1 / 1.15, color="black", linewidth=0.8, linestyle="--", label="target: never below")
    axes.set(xscale="log", yscale="log", xlabel="% of the rows changed", ylabel="recomputation / Penstock")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8)


def _growth(figure: Any, results: list[Result]) -> None:
    axes = figure.subplots()
    for kind, cells in _lines(results[0].cells).items():
        for name, style in ((PENSTOCK, "-"), (FULL, "--")):
            points = [(cell.rows, cell.median(name)) for cell in cells if cell.median(name) is not None]
            line = axes.plot(*_columns(points), style, marker="o", label=f"{kind}, {TITLES[name]}")
            if name == PENSTOCK:
                colour = line[0].get_color()
            else:
                line[0].set_color(colour)
    axes.set(xscale="log", yscale="log", xlabel="rows of the table, the same change", ylabel="seconds")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8)


def _lines(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    lines: dict[str, list[Cell]] = {}
    for cell in cells:
        lines.setdefault(cell.kind or cell.case, []).append(cell)
    return lines


def _columns(points: Sequence[tuple[float, float | None]]) -> tuple[list[float], list[float | None]]:
    return [x for x, _ in points], [y for _, y in points]
