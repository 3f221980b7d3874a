"""The report on measures: the greatest value of each in every variant, then a shortest run to it as a picture."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from qmodel.result import Verdict
from qmodel.views import kernel
from qmodel.views.words import ascii_line, count, number, paragraph, settings, settings_text, shorten, variant_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.result import MeasureResult, Run

_INDENT = "    "
_HEADS = ("variant", "measure", "maximum")


def report(runs: Sequence[Run], *, width: int, full: bool = False) -> str:
    """Return the report on some runs. A maximum of a run that is not complete is a lower bound."""
    blocks: list[list[str]] = []
    for model, group in groupby(runs, lambda run: run.model):
        those = list(group)
        common = [pair for pair in settings(those[0]) if all(pair in settings(run) for run in those)]
        blocks += [paragraph(f"{model}: {settings_text(common)}", width, _INDENT, ""), _table(those, width)]
        blocks += _witnesses(those, width, full=full)
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _witnesses(runs: Sequence[Run], width: int, *, full: bool) -> list[list[str]]:
    """Return a picture for each measure of each variant; the same run is drawn for the first of them alone."""
    drawn: dict[object, str] = {}
    blocks = []
    for run in runs:
        for measure in run.outcome.measures:
            events = measure.trace.events if measure.trace else ()
            key = (measure.name, measure.max, run.outcome.complete, tuple((e.thread, e.text) for e in events))
            if key in drawn:
                same = f"the run that {drawn[key]} has leads to {measure.name} = {measure.max} too."
                blocks.append(paragraph(f"{variant_name(run)}: {same}", width))
            else:
                drawn[key] = run.variant
                blocks.append(kernel.witness(run, measure, full=full).splitlines())
    return blocks


def _table(runs: Sequence[Run], width: int) -> list[str]:
    names = [shorten(ascii_line(run.variant), width // 3) for run in runs]
    measures = [measure for run in runs for measure in run.outcome.measures]
    first = max(map(len, [_HEADS[0], *names]))
    second = max(len(_HEADS[1]), *(len(m.name) for m in measures)) if measures else len(_HEADS[1])
    third = max(len(_HEADS[2]), *(len(_maximum(run, m)) for run in runs for m in run.outcome.measures))
    lines = [f"{_HEADS[0]:{first}}  {_HEADS[1]:{second}}  {_HEADS[2]}"]
    for run, name in zip(runs, names, strict=True):
        shown = name
        for measure in run.outcome.measures:
            cells = f"{shown:{first}}  {measure.name:{second}}  {_maximum(run, measure):{third}}  "
            lines += paragraph(measure.doc, width, " " * len(cells), cells) or [cells.rstrip()]
            shown = ""
        lines += [line for detail in _details(run) for line in paragraph(detail, width, _INDENT)]
    return lines


def _maximum(run: Run, measure: MeasureResult) -> str:
    return f"{'' if run.outcome.complete else 'at least '}{number(measure.max)}"


def _details(run: Run) -> list[str]:
    found = run.outcome
    size = f"{count(found.states, 'state')}, depth {found.depth}, {found.seconds:.2f} s"
    refuted = ", ".join(p.name for p in found.properties if p.verdict is Verdict.REFUTED)
    return [
        "; ".join(part for part in (run.kernel, size) if part),
        *([f"refuted in this variant: {refuted}"] if refuted else []),
        *([] if found.complete else [f"not complete: {found.why}"]),
    ]
