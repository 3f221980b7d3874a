"""The report for scripts: one JSON document, whose form `docs/report.schema.json` states."""

from __future__ import annotations

import json

from qmodel.result import Change, Event, MeasureResult, PropertyResult, Report, Run, Trace
from qmodel.views.words import Param

SCHEMA = 1
"""Changes when a key goes away or means something else; a new key is no reason."""

_Object = dict[str, object]


def document(report: Report) -> str:
    """Return the report as JSON: keys in a fixed order, two columns an indent, a newline at the end."""
    whole = {"schema": SCHEMA, "qmodel": report.version, "runs": [_run(run) for run in report.runs]}
    return json.dumps(whole, indent=2) + "\n"


def _run(run: Run) -> _Object:
    found = run.outcome
    return {
        "model": run.model,
        "variant": run.variant,
        "params": {name: param(value) for name, value in run.params},
        "memory": run.memory,
        "scenario": run.scenario,
        "engine": found.engine,
        "reductions": list(found.reductions),
        "verdict": found.verdict.value,
        "strength": found.strength.value if found.strength else None,
        "why": found.why,
        "complete": found.complete,
        "expected": run.expected.verdict.value if run.expected else None,
        "as_expected": run.as_expected,
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "seconds": round(found.seconds, 3),
        "bytes_per_state": found.bytes_per_state,
        "properties": [_property(run, prop) for prop in found.properties],
        "measures": [_measure(run, measure) for measure in found.measures],
    }


def param(value: Param) -> int | list[int]:
    """Return the value of a parameter as JSON has it."""
    return value if isinstance(value, int) else list(value)


def _property(run: Run, prop: PropertyResult) -> _Object:
    return {
        "name": prop.name,
        "verdict": prop.verdict.value,
        "why": prop.why,
        "trace": trace_object(run, prop.trace),
    }


def _measure(run: Run, measure: MeasureResult) -> _Object:
    return {"name": measure.name, "max": measure.max, "trace": trace_object(run, measure.trace)}


def trace_object(run: Run, trace: Trace | None) -> _Object | None:
    """Return a trace as a JSON object, or None."""
    if trace is None:
        return None
    return {
        "length": len(trace.steps),
        "switches": trace.switches,
        "story": list(trace.story),
        "initial": dict(trace.initial),
        "steps": [
            _event(run, event, number, step.alternative)
            for number, step in enumerate(trace.steps)
            for event in step.events
        ],
    }


def _event(run: Run, event: Event, step: int, alternative: int) -> _Object:
    thread = run.outcome.threads[event.thread]
    return {
        "step": step,
        "alternative": alternative,
        "cpu": thread.cpu if thread.cpu >= 0 else None,
        "thread": thread.name,
        "function": event.function,
        "text": event.text,
        "file": event.file,
        "line": event.line,
        "changes": _changes(event.changes),
    }


def _changes(changes: tuple[Change, ...]) -> dict[str, list[str]]:
    """Return before and after of each variable; of one that changes twice, the first and the last value."""
    merged: dict[str, list[str]] = {}
    for change in changes:
        before = merged[change.name][0] if change.name in merged else change.before
        merged[change.name] = [before, change.after]
    return merged
