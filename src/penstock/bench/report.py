"""Results as words: rows of a table for the terminal and for Markdown, and the page of benchmarks with them filled in.

Pure: what is printed where is decided elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.bench.measure import FULL, PENSTOCK, TITLES, Cell, Goal, Recorded, Result
from penstock.errors import WarehouseError
from penstock.vocabulary import Action, Reason

_SIGNS = {">=": "at least", "<=": "at most"}


@dataclass(frozen=True)
class Sheet:
    """A table of text."""

    columns: list[str]
    rows: list[list[str]]


def sheet(result: Result) -> Sheet:
    """One row a case. A contender's column says how many times as long it took as Penstock; one below 1 is a loss."""
    others = [name for name in TITLES if name != PENSTOCK and any(name in cell.seconds for cell in result.cells)]
    columns = ["case", "rows", "changed", "Penstock", *(TITLES[name] for name in others), "refreshes", "jobs", "memory"]
    rows = [
        [
            cell.case,
            f"{cell.rows:,}",
            f"{cell.changed:,}",
            seconds_text(cell.median(PENSTOCK)),
            *(ratio_text(cell.ratio(name)) for name in others),
            actions_text(cell.actions),
            "-" if cell.jobs is None else str(cell.jobs),
            memory_text(cell.peak),
            goals_text((goal for goal in result.goals if goal.case == cell.case), result.full_size),
        ]
        for cell in result.cells
    ]
    return Sheet([*columns, "target"], rows)


def seconds_text(seconds: float | None) -> str:
    """
    >>> seconds_text(0.0123), seconds_text(1.234), seconds_text(56.7), seconds_text(None)
    ('0.012 s', '1.23 s', '56.7 s', '-')
    """
    if seconds is None:
        return "-"
    return f"{seconds:.3f} s" if seconds < 0.1 else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def ratio_text(ratio: float | None) -> str:
    """
    >>> ratio_text(15.04), ratio_text(0.456), ratio_text(123.4), ratio_text(None)
    ('15.0 x', '0.46 x', '123 x', '-')
    """
    if ratio is None:
        return "-"
    return f"{ratio:.0f} x" if ratio >= 100 else f"{ratio:.1f} x" if ratio >= 1 else f"{ratio:.2g} x"


def memory_text(peak: int | None) -> str:
    """
    >>> memory_text(3 * 2**30), memory_text(None)
    ('3.0 GiB', '-')
    """
    return "-" if peak is None else f"{peak / 2**30:.1f} GiB"


def actions_text(actions: Sequence[Recorded]) -> str:
    """The actions with the strategies that carried them out; of what was not incremental also the reasons.

    >>> from penstock.vocabulary import Reason, Strategy
    >>> actions_text([
    ...     Recorded(view="a", action=Action.INCREMENTAL, strategy=Strategy.APPEND, reason=Reason.CHANGED, times=3),
    ...     Recorded(view="b", action=Action.FULL, strategy=None, reason=Reason.CHEAPER),
    ... ])
    '3 INCREMENTAL (APPEND), 1 FULL (CHEAPER)'
    """
    counts: Counter[str] = Counter()
    details: dict[str, list[str]] = {}
    for action in actions:
        counts[action.action] += action.times
        ordinary = action.action in (Action.INCREMENTAL, Action.NO_DATA)
        detail = (action.strategy or "") if ordinary else action.reason
        if detail and detail not in details.setdefault(action.action, []):
            details[action.action].append(detail)
    return ", ".join(
        f"{times} {action}" + (f" ({', '.join(details[action])})" if details.get(action) else "")
        for action, times in counts.most_common()
    )


def goals_text(goals: Iterable[Goal], full_size: bool = True) -> str:
    """
    >>> gib = Goal(what="GiB", measured=7.5, bound="<=", target=6)
    >>> goals_text([Goal(what="x the speed", measured=20.0, bound=">=", target=15), gib])
    'at least 15 x the speed: met (20); at most 6 GiB: MISSED (7.5)'
    """
    return "; ".join(goal_text(goal, full_size) for goal in goals)


def goal_text(goal: Goal, full_size: bool = True) -> str:
    """A target and what it came to; on fewer rows than it was set for, it is neither met nor missed."""
    aim = f"{_SIGNS[goal.bound]} {goal.target:g} {goal.what}"
    if goal.measured is None:
        return f"{aim}: not measured"
    verdict = ("met" if goal.met else "MISSED") if full_size else "at this size"
    return f"{aim}: {verdict} ({goal.measured:.3g})"


def whole_goals(result: Result) -> list[str]:
    """The goals of the workload as a whole, with what they came to."""
    return [goal_text(goal, result.full_size) for goal in result.goals if not goal.case]


def remarks(result: Result) -> list[str]:
    """What a reader must know beside the table."""
    said = [f"{TITLES[name]} did not run: {reason}." for name, reason in result.left_out.items()]
    notes = list(dict.fromkeys(note for cell in result.cells for note in cell.notes))
    said += [f"{note}." for note in notes if not any(later != note and later.startswith(note) for later in notes)]
    for cell in result.cells:
        ordinary = (Action.INCREMENTAL, Action.NO_DATA)
        full = [a for a in cell.actions if a.action not in ordinary and a.reason != Reason.INITIAL]
        if full:
            views = ", ".join(sorted({f"{a.view} ({a.action}, {a.reason})" for a in full}))
            said.append(f"{cell.case}: recomputed by Penstock itself: {views}.")
        if cell.requests:
            asked = ", ".join(f"{TITLES[name]} {count:,}" for name, count in cell.requests.items())
            said.append(f"{cell.case}: requests to the store in the last run: {asked}.")
    return said


# -- Markdown ---------------------------------------------------------------------------------------------------------


def markdown(result: Result) -> str:
    """A workload's part of the page: its conditions, its table, its goals and remarks."""
    table = sheet(result)
    others = {TITLES[name] for name in TITLES if name != PENSTOCK}
    kinds = ["left" if c in ("case", "refreshes", "target") else "right" for c in table.columns]
    lines = [_conditions(result), "", _line(table.columns)]
    lines.append(_line(["---" if kind == "left" else "---:" for kind in kinds]))
    for row in table.rows:
        lines.append(_line([_emphasised(c, text, c in others) for c, text in zip(table.columns, row, strict=True)]))
    notes = [*whole_goals(result), *remarks(result)]
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines)


def _conditions(result: Result) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in result.machine.items())
    scale = "" if result.scale == 1 else f"At scale {result.scale:g}, so not comparable with the targets. "
    return f"{scale}Medians of {result.repeat}; {machine}."


def _emphasised(column: str, text: str, is_ratio: bool) -> str:
    """Losses and missed targets in bold."""
    lost = is_ratio and text.startswith("0.")
    return f"**{text}**" if lost or (column == "target" and "MISSED" in text) else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def filled(page: str, parts: Mapping[str, str]) -> str:
    """The page with each part between its markers, ``<!-- bench: name -->`` and ``<!-- end -->``.

    >>> filled("a\\n<!-- bench: x -->\\nold\\n<!-- end -->\\nb", {"x": "new"})
    'a\\n<!-- bench: x -->\\n\\nnew\\n\\n<!-- end -->\\nb'
    """
    for name, text in parts.items():
        pattern = re.compile(rf"(<!-- bench: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(page):
            raise WarehouseError(
                f"the page has no place for {name!r}. Add the lines <!-- bench: {name} --> and <!-- end -->."
            )
        page = pattern.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", page)  # type: ignore[misc]
    return page


def summary(results: Iterable[Result]) -> str:
    """One row a workload: the smallest ratio to recomputation of its cases, and its targets."""
    lines = [_line(["workload", "slowest case against recomputation", "targets met"]), _line(["---", "---:", "---:"])]
    for result in results:
        ratios = [ratio for ratio in map(_to_full, result.cells) if ratio is not None]
        met = f"{sum(goal.met is True for goal in result.goals)} of {len(result.goals)}" if result.full_size else "-"
        worst = ratio_text(min(ratios, default=None))
        name = f"[{result.workload}](#{result.workload})"
        lines.append(_line([name, f"**{worst}**" if worst.startswith("0.") else worst, met]))
    return "\n".join(lines)


def _to_full(cell: Cell) -> float | None:
    return cell.ratio(FULL)
