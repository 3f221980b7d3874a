"""The report a person reads in a terminal: verdicts, then why they are not better, then measures and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import groupby

from qmodel.result import PropertyResult, Report, Run, Verdict
from qmodel.views import kernel
from qmodel.views.words import (
    Setting,
    ascii_line,
    count,
    number,
    paragraph,
    settings,
    settings_text,
    shorten,
    variant_name,
    verdict_text,
)

_INDENT = "    "
_NARROWEST = len("inconclusive:")
_CODES = {"good": "32", "bad": "1;31", "open": "33", "faint": "2", "head": "1"}

_Paint = Callable[[str, str], str]


def report(report: Report, *, color: bool, width: int, pictures: bool = True, full: bool = False) -> str:
    """Return the report in so many columns.

    Without pictures, a run that is refuted as expected has its row alone. A picture is never wider than
    `kernel.WIDTH` nor made narrower; `full` shows every access in it.
    """
    paint: _Paint = _colored if color else _plain
    blocks: list[list[str]] = []
    for _, group in groupby(report.runs, lambda run: run.model):
        runs = list(group)
        common, own = _common(runs)
        blocks.append(_head(runs[0].model, common, width, paint) + _table(runs, own, width, paint))
        for run, differing in zip(runs, own, strict=True):
            if run.outcome.verdict is not Verdict.HOLDS and (pictures or not run.as_expected):
                blocks += _findings(run, differing, width, paint, pictures=pictures, full=full)
        blocks += [_measures(run, differing, width, paint) for run, differing in zip(runs, own, strict=True)]
    blocks.append(_summary(report.runs, width, paint))
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _plain(_: str, text: str) -> str:
    return text


def _colored(tone: str, text: str) -> str:
    return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if text else text


def _tone(run: Run) -> str:
    if run.outcome.verdict is Verdict.INCONCLUSIVE:
        return "open"
    if run.as_expected is None:
        return "good" if run.outcome.verdict is Verdict.HOLDS else "open"
    return "good" if run.as_expected else "bad"


def _common(runs: list[Run]) -> tuple[list[Setting], list[list[Setting]]]:
    """Return the settings that all runs share, and those of each run that they do not."""
    all_settings = [
        [
            *settings(run),
            ("engine", run.outcome.engine),
            ("reductions", ",".join(run.outcome.reductions) or "none"),
        ]
        for run in runs
    ]
    common = [pair for pair in all_settings[0] if all(pair in pairs for pairs in all_settings)]
    return common, [[pair for pair in pairs if pair not in common] for pairs in all_settings]


def _head(model: str, common: list[Setting], width: int, paint: _Paint) -> list[str]:
    first, *rest = paragraph(f"{model}: {settings_text(common)}", width, _INDENT, "")
    return [paint("head", first), *rest, ""]


def _table(runs: list[Run], own: list[list[Setting]], width: int, paint: _Paint) -> list[str]:
    """Two lines a run: variant, verdict and whether it is as expected; then what the verdict is about, and its cost."""
    names = [shorten(ascii_line(run.variant), width // 3) for run in runs]
    name_width = max(map(len, ["variant", *names]))
    expected_width = max(len(_expected(run)) for run in runs)
    verdict_width = max(width - name_width - expected_width - 4, _NARROWEST)
    verdict_width = min(verdict_width, max(len(verdict_text(run.outcome)) for run in runs))
    lines = [paint("faint", f"{'variant':{name_width}}  {'verdict':{verdict_width}}  expected")]
    for run, name, differing in zip(runs, names, own, strict=True):
        first, *rest = paragraph(verdict_text(run.outcome), verdict_width) or [""]
        verdict = paint(_tone(run), first) + " " * (verdict_width - len(first))
        lines.append(f"{name:{name_width}}  {verdict}  {paint(_tone(run), _expected(run))}")
        lines += [" " * (name_width + 2) + paint(_tone(run), line) for line in rest]
        lines += [paint("faint", line) for line in _filled(_details(run, differing), width)]
    return lines


def _expected(run: Run) -> str:
    if run.expected is None:
        return "not stated"
    if run.outcome.verdict is Verdict.INCONCLUSIVE:
        return "undecided"
    return "as expected" if run.as_expected else "UNEXPECTED"


def _filled(parts: list[str], width: int) -> list[str]:
    """Return lines that hold as many parts as fit; only a part that is too long for a line is broken."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"; {part}"
        else:
            lines += paragraph(part, width, _INDENT)
    return lines


def _details(run: Run, differing: list[Setting]) -> list[str]:
    found = run.outcome
    parts = [
        run.kernel,
        settings_text(differing),
        f"{count(found.states, 'state')}, depth {found.depth}, {found.seconds:.2f} s",
    ]
    if not found.complete and found.verdict is Verdict.REFUTED:
        parts.append(f"not complete: {found.why}")
    if run.expected and _expected(run) != "as expected":
        parts.append("expected: " + " ".join([run.expected.verdict.value, ", ".join(run.expected.properties)]).strip())
    return [part for part in parts if part]


def _findings(
    run: Run, differing: list[Setting], width: int, paint: _Paint, *, pictures: bool, full: bool
) -> list[list[str]]:
    """Return the verdict on each property, those that hold in a row, and the picture that says most."""
    traced = sorted((p for p in run.outcome.properties if p.trace), key=lambda p: _interest(run, p))
    drawn = traced[0] if traced and pictures else None
    bad = [p for p in run.outcome.properties if p.verdict is not Verdict.HOLDS]
    name_width = max((len(p.name) for p in bad), default=0)
    verdict_width = max((len(p.verdict.value) for p in bad), default=0)
    lines = [_title(run, differing, paint)]
    for prop in bad:
        verdict = f"  {prop.name:{name_width}}  {prop.verdict.value}"
        column = " " * (name_width + verdict_width + 6)
        why = paragraph(_why(prop, drawn=prop is drawn), width, column)
        lines.append(paint(_property_tone(run, prop), verdict) + "".join(why[:1])[len(verdict) :])
        lines += why[1:]
    held = [p.name for p in run.outcome.properties if p.verdict is Verdict.HOLDS]
    if held:
        first = "  holds: " if len(held) == 1 else "  hold: "
        lines += [paint("good", line) for line in paragraph(", ".join(held), width, _INDENT, first)]
    if drawn is None:
        return [lines]
    blocks = [lines, kernel.picture(run, drawn, full=full).splitlines()]
    if traced[1:]:
        others = ", ".join(p.name for p in traced[1:])
        blocks.append([*paragraph(f"Pictures of {others} as well:", width), *_command(run.command, width)])
    return blocks


def _title(run: Run, differing: list[Setting], paint: _Paint) -> str:
    return paint("head", ascii_line(f"{variant_name(run)} {settings_text(differing)}").strip() + ":")


def _why(prop: PropertyResult, *, drawn: bool) -> str:
    """Return how long the trace is, and what was violated unless the picture tells."""
    steps = [count(len(prop.trace.steps), "step"), count(prop.trace.switches, "switch")] if prop.trace else []
    return ": ".join(part for part in (", ".join(steps), "" if drawn else prop.why) if part)


def _property_tone(run: Run, prop: PropertyResult) -> str:
    """Return the tone of a property that does not hold."""
    if prop.verdict is Verdict.INCONCLUSIVE or run.expected is None:
        return "open"
    return "good" if prop.name in run.expected.properties else "bad"


def _interest(run: Run, prop: PropertyResult) -> tuple[bool, int]:
    """Order refuted properties: what nobody expects comes first, then the shortest."""
    foreseen = run.expected is not None and prop.name in run.expected.properties
    return foreseen, len(prop.trace.steps) if prop.trace else 0


def _command(command: str, width: int) -> list[str]:
    """Return the command that draws every picture, in lines that a shell can be given."""
    lines = paragraph(f"{command} --format kernel", width - 2, _INDENT)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _measures(run: Run, differing: list[Setting], width: int, paint: _Paint) -> list[str]:
    measures = run.outcome.measures
    if not measures:
        return []
    name_width = max(len(m.name) for m in measures)
    relation = "max" if run.outcome.complete else "at least"
    maxima = [f"{relation} {number(m.max)}" for m in measures]
    max_width = max(map(len, maxima))
    lines = [_title(run, differing, paint)]
    for measure, greatest in zip(measures, maxima, strict=True):
        first = f"  {measure.name:{name_width}}  {greatest:{max_width}}  "
        lines += paragraph(measure.doc, width, " " * len(first), first) or [first.rstrip()]
    return lines


def _summary(runs: tuple[Run, ...], width: int, paint: _Paint) -> list[str]:
    counts = Counter(_outcome_words(run) for run in runs)
    order = ("bad", "open", "good")
    worst = min((_tone(run) for run in runs), key=order.index, default="open")
    parts = [
        f"{number(counts[words])} {words if counts[words] == 1 else words.replace('holds', 'hold')}"
        for words in _OUTCOMES
        if words in counts
    ]
    text = f"{count(len(runs), 'run')}: {', '.join(parts) or 'nothing was checked'}"
    return [paint(worst, line) for line in paragraph(text, width)]


_OUTCOMES = (
    "holds",
    "refuted as expected",
    "refuted where nothing is expected",
    "holds UNEXPECTEDLY",
    "refuted UNEXPECTEDLY",
    "inconclusive",
)


def _outcome_words(run: Run) -> str:
    """Return which of `_OUTCOMES` a run is counted as."""
    verdict = run.outcome.verdict
    if verdict is Verdict.INCONCLUSIVE:
        return "inconclusive"
    if run.as_expected is False:
        return f"{verdict.value} UNEXPECTEDLY"
    if verdict is Verdict.HOLDS:
        return "holds"
    return "refuted as expected" if run.as_expected else "refuted where nothing is expected"
