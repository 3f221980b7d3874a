"""The picture of a trace that kernel people paste into commit messages: ASCII, a column per CPU, an event a row."""

from __future__ import annotations

import re

from qmodel.result import MeasureResult, PropertyResult, Report, Run, Trace, Verdict
from qmodel.views.columns import WIDTH, draw
from qmodel.views.lanes import lanes_and_rows
from qmodel.views.words import paragraph, settings, settings_text, variant_name

_NOTHING = re.compile(r"(0|false|NULL|free|nowhere|unborn|[\[\]{}(), ])*")
"""Values that a variable starts with unless somebody says otherwise."""


def picture(run: Run, prop: PropertyResult, *, full: bool = False) -> str:
    """Return the picture of a counterexample; `full` shows the events that explain nothing as well."""
    story = prop.trace.story if prop.trace and prop.trace.story else (f"Violated: {prop.name}. {prop.why}",)
    return _page(run, prop.trace, story, deadlock="deadlock" in prop.name, full=full)


def witness(run: Run, measure: MeasureResult, *, full: bool = False) -> str:
    """Return the picture of a shortest run to the greatest value of a measure."""
    reached = "is the maximum" if run.outcome.complete else "was reached; the search is not complete"
    story = (*(measure.trace.story if measure.trace else ()), f"{measure.name} = {measure.max} {reached}.")
    return _page(run, measure.trace, story, deadlock=False, full=full)


def pictures(report: Report, *, full: bool = False) -> str:
    """Return the pictures of every refuted property of every run, one below the other."""
    refuted = [(r, p) for r in report.runs for p in r.outcome.properties if p.verdict is Verdict.REFUTED]
    return "\n\n".join(picture(run, prop, full=full) for run, prop in refuted)


def _page(run: Run, trace: Trace | None, story: tuple[str, ...], *, deadlock: bool, full: bool) -> str:
    blocks = [_title(run, trace)]
    if trace is not None and trace.events:
        lines = draw(*lanes_and_rows(trace, run.outcome.threads, full=full))
        blocks.append(lines)
        if deadlock:
            blocks.append([" *** DEADLOCK ***"])
    blocks.append(paragraph(" ".join(story), WIDTH))
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _title(run: Run, trace: Trace | None) -> list[str]:
    given = [f"{name} = {value}" for name, value in (trace.initial if trace else ()) if not _NOTHING.fullmatch(value)]
    lines = [
        f"{variant_name(run)}: {settings_text(settings(run))}",
        f"Kernel: {run.kernel}" if run.kernel else "",
        f"Initially: {', '.join(given)}" if given else "",
    ]
    return [line for text in lines for line in paragraph(text, WIDTH, "    ", "")]
