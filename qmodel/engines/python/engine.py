"""The python engine: searches, finds shortest traces, and gives an Outcome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from qmodel.engines.python.explore import Exploration, Explorer, Goal
from qmodel.engines.python.paths import shortest
from qmodel.engines.trace import Target, TraceWriter
from qmodel.ir.program import BOUND
from qmodel.result import MeasureResult, Outcome, PropertyResult, Strength, Trace, Verdict

if TYPE_CHECKING:
    from qmodel.engines.options import Options
    from qmodel.ir.program import Program


def run(program: Program, options: Options) -> Outcome:
    """Search a lowered program. Raises SetupError where its scenario violates a property by itself."""
    started = time.monotonic()
    explorer = Explorer(program, options)
    found = explorer.run()
    targets = [Target(property=name) for name in found.goals]
    goals = list(found.goals.values())
    for measure, best in zip(program.measures, found.maxima, strict=True):
        if best is not None:
            targets.append(Target(measure=measure.name, value=best[0]))
            goals.append(best[1])
    traces = _traces(explorer, found, goals, targets)
    properties = tuple(_property(found, name, doc, traces) for name, doc in _judged(program))
    measures = tuple(
        MeasureResult(m.name, m.doc, best[0], traces.get(("measure", m.name)))
        for m, best in zip(program.measures, found.maxima, strict=True)
        if best is not None
    )
    verdict = max((p.verdict for p in properties), key=list(Verdict).index, default=Verdict.HOLDS)
    return Outcome(
        engine="python",
        reductions=program.reductions,
        threads=TraceWriter(explorer.interpreter).threads(),
        verdict=verdict,
        strength=Strength.EXHAUSTIVE if verdict is Verdict.HOLDS else None,
        complete=found.complete,
        interrupted=found.interrupted,
        why=found.why or (_cut(found) if found.cut and verdict is Verdict.INCONCLUSIVE else ""),
        states=found.states,
        transitions=found.transitions,
        depth=found.depth,
        seconds=time.monotonic() - started,
        bytes_per_state=found.bytes_per_state,
        properties=properties,
        measures=measures,
        buffer_full=found.bound,
    )


def _judged(program: Program) -> list[tuple[str, str]]:
    return [*((p.name, p.doc) for p in program.properties), *(b for b in program.builtin if b[0] != BOUND)]


def _traces(
    explorer: Explorer, found: Exploration, goals: list[Goal], targets: list[Target]
) -> dict[tuple[str, str], Trace]:
    writer = TraceWriter(explorer.interpreter)
    layout = found.model.layout
    traces: dict[tuple[str, str], Trace] = {}
    for target, path in zip(targets, shortest(found, goals), strict=True):
        states = [(layout.unpack(packed), tid) for packed, tid in path]
        key = ("property", target.property) if target.property else ("measure", target.measure)
        traces[key] = writer.along(states, target)
    return traces


def _property(found: Exploration, name: str, doc: str, traces: dict[tuple[str, str], Trace]) -> PropertyResult:
    trace = traces.get(("property", name))
    if trace is not None:
        return PropertyResult(name, doc, Verdict.REFUTED, trace.story[-2], trace)
    if found.complete and not found.cut:
        return PropertyResult(name, doc, Verdict.HOLDS)
    return PropertyResult(name, doc, Verdict.INCONCLUSIVE, found.why or _cut(found))


def _cut(found: Exploration) -> str:
    if found.bound:
        return f"a store buffer was too short {found.bound:,} times"
    steps = "one step ends" if found.cut == 1 else f"{found.cut:,} steps end"
    return f"{steps} in an error of the language, and what comes after it is not known"
