"""What two variants do differently: a diff of their source, of their steps, and their verdicts side by side."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from qmodel.result import Verdict
from qmodel.views.words import ascii_line, count, number, paragraph, settings, settings_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.result import PropertyResult, Run

_CONTEXT = 3
"""Lines that are alike, around those that differ."""


@dataclass(frozen=True, slots=True)
class Source:
    """A function or a declaration as it is written: `specs/requeue.py Tail.dev_requeue_skb`, first line, lines."""

    name: str
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepText:
    """A step that only one variant has: what it does, where it stands, and how often (a function may be inlined)."""

    text: str
    place: str
    times: int


@dataclass(frozen=True, slots=True)
class ThreadSteps:
    """The steps of a thread: how many each variant has, and those that only one has.

    repeated: functions with steps that both have, in a different number of places. moved: the order differs.
    """

    name: str
    counts: tuple[int, int]
    removed: tuple[StepText, ...]
    added: tuple[StepText, ...]
    repeated: tuple[str, ...]
    moved: bool


def source(changes: Sequence[tuple[Source | None, Source | None]]) -> str:
    """Return a unified diff of functions and declarations; None where a variant does not have one."""
    lines: list[str] = []
    for old, new in changes:
        lines += [f"--- {old.name if old else '/dev/null'}", f"+++ {new.name if new else '/dev/null'}"]
        lines += _hunks(old or Source("", 1, ()), new or Source("", 1, ()))
    return "".join(f"{line}\n" for line in lines)


def _hunks(old: Source, new: Source) -> list[str]:
    matcher = SequenceMatcher(None, old.lines, new.lines, autojunk=False)
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        lines.append(f"@@ -{_span(old, a, b)} +{_span(new, c, d)} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [f" {line}".rstrip() for line in old.lines[i:j]]
            else:
                lines += [f"-{line}" for line in old.lines[i:j]] + [f"+{line}" for line in new.lines[k:m]]
    return lines


def _span(part: Source, start: int, end: int) -> str:
    return f"{part.first + start if part.lines else 0},{end - start}"


def steps(threads: Sequence[ThreadSteps], names: tuple[str, str], width: int) -> str:
    """Return for each thread the steps that only one variant has."""
    lines: list[str] = []
    for thread in threads:
        if not (thread.removed or thread.added or thread.repeated):
            same = f"the same {count(thread.counts[0], 'step')}"
            lines += paragraph(f"{thread.name}: {same}{' in another order' if thread.moved else ''}", width, "    ", "")
            continue
        counts = f"{count(thread.counts[0], 'step')} in {names[0]}, {number(thread.counts[1])} in {names[1]}"
        lines += paragraph(f"{thread.name}: {counts}", width, "    ", "")
        rows = [("-", step) for step in thread.removed] + [("+", step) for step in thread.added]
        places = max((len(step.place) for _, step in rows), default=0)
        for sign, step in rows:
            first = f"  {sign} {step.place:{places}}  "
            times = f" (in {step.times} places)" if step.times > 1 else ""
            lines += paragraph(step.text + times, width, " " * len(first), first)
        if thread.repeated:
            text = f"in a different number of places: steps of {', '.join(thread.repeated)}"
            lines += paragraph(text, width, "    ", "  ~ ")
    return "".join(f"{line}\n" for line in lines)


def verdicts(first: Run, second: Run, width: int) -> str:
    """Return the verdicts of two variants side by side; properties that come out alike share a line."""
    both = [pair for pair in settings(first) if pair in settings(second)]
    lines = [*paragraph(f"{first.model}: {settings_text(both)}", width, "    ", ""), ""]
    named = [{p.name: p for p in run.outcome.properties} for run in (first, second)]
    names = list(dict.fromkeys([*named[0], *named[1]]))
    pairs = {name: (named[0].get(name), named[1].get(name)) for name in names}
    alike = [n for n, (a, b) in pairs.items() if a and b and a.verdict is b.verdict is not Verdict.REFUTED]
    rows = [("", first.variant, second.variant)]
    rows += [(name, _verdict(a), _verdict(b)) for name, (a, b) in pairs.items() if name not in alike]
    one, other = first.outcome, second.outcome
    rows.append(("verdict", one.verdict.value, other.verdict.value))
    rows.append(("expected", _expected(first), _expected(second)))
    rows += _measures(first, second)
    rows.append(("states", number(one.states), number(other.states)))
    rows.append(("depth", number(one.depth), number(other.depth)))
    lines += _columns(rows)
    for verdict in (Verdict.HOLDS, Verdict.INCONCLUSIVE):
        those = [name for name in alike if named[0][name].verdict is verdict]
        if those:
            what = "hold in both" if verdict is Verdict.HOLDS else "are inconclusive in both"
            what = what if len(those) > 1 else what.replace("hold ", "holds ").replace("are ", "is ")
            lines += paragraph(f"{', '.join(those)} {what}", width, "    ", "")
    for run in (first, second):
        if run.outcome.why:
            lines += paragraph(f"{run.variant} is not complete: {run.outcome.why}", width, "    ", "")
    return "".join(f"{line}\n" for line in lines)


def _columns(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    texts = [[ascii_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(2)]
    return [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in texts]


def _verdict(prop: PropertyResult | None) -> str:
    if prop is None:
        return "-"
    return f"refuted, {count(len(prop.trace.steps), 'step')}" if prop.trace else prop.verdict.value


def _expected(run: Run) -> str:
    if run.expected is None:
        return "not stated"
    return {True: "as expected", False: "UNEXPECTED", None: "undecided"}[run.as_expected]


def _measures(first: Run, second: Run) -> list[tuple[str, str, str]]:
    known = [
        {m.name: f"{'' if run.outcome.complete else 'at least '}{m.max}" for m in run.outcome.measures}
        for run in (first, second)
    ]
    names = dict.fromkeys([*known[0], *known[1]])
    return [(f"max {name}", known[0].get(name, "-"), known[1].get(name, "-")) for name in names]
