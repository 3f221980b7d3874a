"""The report on random walks: what they refuted, how far they went, and that they prove nothing."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from qmodel.result import PropertyResult, Verdict
from qmodel.views import kernel
from qmodel.views.words import ascii_line, count, number, paragraph, settings, settings_text, variant_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.result import Run

_INDENT = "    "
_PROVES_NOTHING = (
    "Random walks can show that a property is violated, never that it holds: `qmodel check` tries every interleaving."
)


def report(runs: Sequence[Run], *, width: int, full: bool = False) -> str:
    """Return the report on walks through some variants, with the picture of a refutation of each."""
    blocks: list[list[str]] = []
    for model, group in groupby(runs, lambda run: run.model):
        those = list(group)
        common = [pair for pair in settings(those[0]) if all(pair in settings(run) for run in those)]
        blocks += [paragraph(f"{model}: {settings_text(common)}", width, _INDENT, ""), _table(those, width)]
        for run in those:
            refuted = _refuted(run)
            if refuted:
                blocks.append(kernel.picture(run, refuted[0], full=full).splitlines())
                blocks += [_others(run, refuted, width)] if refuted[1:] else []
        measured = [line for run in those for line in _measures(run, width)]
        blocks += [measured] if measured else []
    if any(run.outcome.verdict is not Verdict.REFUTED for run in runs):
        blocks.append(paragraph(_PROVES_NOTHING, width))
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _refuted(run: Run) -> list[PropertyResult]:
    """Return the refuted properties: what nobody expects first, then the shortest trace."""
    wanted = run.expected.properties if run.expected else ()
    found = [p for p in run.outcome.properties if p.verdict is Verdict.REFUTED]
    return sorted(found, key=lambda p: (p.name in wanted, len(p.trace.steps) if p.trace else 0))


def _table(runs: Sequence[Run], width: int) -> list[str]:
    names = max(len("variant"), *(len(run.variant) for run in runs))
    verdicts = max(len("verdict"), *(len(_verdict(run)) for run in runs))
    lines = [f"{'variant':{names}}  {'verdict':{verdicts}}  expected"]
    for run in runs:
        lines.append(f"{ascii_line(run.variant):{names}}  {_verdict(run):{verdicts}}  {_expected(run)}")
        found = run.outcome
        walked = f"{count(found.transitions, 'step')} taken, {number(found.depth)} in the longest walk"
        seen = f"{count(found.states, 'distinct state')} seen, {found.seconds:.2f} s"
        lines += paragraph(f"{found.why}: {walked}; {seen}", width, _INDENT)
    return lines


def _verdict(run: Run) -> str:
    refuted = ", ".join(p.name for p in _refuted(run))
    return f"refuted: {refuted}" if refuted else run.outcome.verdict.value


def _expected(run: Run) -> str:
    if run.expected is None:
        return "not stated"
    return {True: "as expected", False: "UNEXPECTED", None: "undecided"}[run.as_expected]


def _others(run: Run, refuted: Sequence[PropertyResult], width: int) -> list[str]:
    lengths = (f"{p.name} ({count(len(p.trace.steps), 'step')})" for p in refuted[1:] if p.trace)
    text = f"{variant_name(run)} violates {', '.join(lengths)} as well; the picture above is of {refuted[0].name}."
    return paragraph(text, width)


def _measures(run: Run, width: int) -> list[str]:
    return [
        line
        for m in run.outcome.measures
        for line in paragraph(f"{variant_name(run)}: {m.name} is at least {number(m.max)}", width, _INDENT, "")
    ]
