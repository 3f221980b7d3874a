"""The picture of a trace that kernel people paste into commit messages: ASCII, a column per CPU, an event a row."""

from __future__ import annotations

import re

from qmodel.result import MeasureResult, PropertyResult, Report, Run, Trace, Verdict
from qmodel.views.columns import WIDTH, draw
from qmodel.views.lanes import arrange
from qmodel.views.words import count, paragraph, settings, settings_text, variant_name

_NOTHING = re.compile(r"(0|false|NULL|free|nowhere|unborn|[\[\]{}(), ])*")
"""Values that a variable starts with unless somebody says otherwise."""


def picture(run: Run, prop: PropertyResult, *, full: bool = False) -> str:
    """Return the picture of a counterexample; `full` shows the events that explain nothing as well."""
    story = prop.trace.story if prop.trace and prop.trace.story else (f"Violated: {prop.name}. {prop.why}",)
    if "deadlock" in prop.name:
        return _page(run, prop.trace, story, end=" *** DEADLOCK ***", full=full)
    return _page(run, prop.trace, story, remark=f"/* violates {prop.name} */", full=full)


def witness(run: Run, measure: MeasureResult, *, full: bool = False) -> str:
    """Return the picture of a shortest run to the greatest value of a measure."""
    reached = "is the maximum" if run.outcome.complete else "was reached; the search is not complete"
    story = (*(measure.trace.story if measure.trace else ()), f"{measure.name} = {measure.max} {reached}.")
    return _page(run, measure.trace, story, full=full)


def pictures(report: Report, *, full: bool = False) -> str:
    """Return the pictures of every refuted property of every run, one below the other."""
    refuted = [(r, p) for r in report.runs for p in r.outcome.properties if p.verdict is Verdict.REFUTED]
    return "\n\n".join(picture(run, prop, full=full) for run, prop in refuted)


def _page(run: Run, trace: Trace | None, story: tuple[str, ...], *, remark: str = "", end: str = "", full: bool) -> str:
    blocks = [_title(run, trace)]
    if trace is not None and trace.events:
        drawn = arrange(trace, run.outcome.threads, remark, full=full)
        blocks.append(draw(drawn))
        if end:
            blocks.append([end])
        if drawn.left_out:
            blocks.append(paragraph(_left_out(drawn.left_out), WIDTH))
    blocks.append(paragraph(" ".join(_sentence(text) for text in story), WIDTH))
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?", ":")) else text + "."


def _left_out(number: int) -> str:
    one = number == 1
    verbs, object_ = ("that does not bear on this is", "it") if one else ("that do not bear on this are", "them")
    return f"({count(number, 'access')} {verbs} left out; --full shows {object_})"


def _title(run: Run, trace: Trace | None) -> list[str]:
    given = [f"{name} = {value}" for name, value in (trace.initial if trace else ()) if not _NOTHING.fullmatch(value)]
    lines = [
        f"{variant_name(run)}: {settings_text(settings(run))}",
        f"Kernel: {run.kernel}" if run.kernel else "",
        f"Initially: {', '.join(given)}" if given else "",
    ]
    return [line for text in lines for line in paragraph(text, WIDTH, "    ", "")]
