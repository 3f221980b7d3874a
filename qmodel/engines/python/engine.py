"""The python engine: searches, finds shortest traces, and gives an Outcome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from qmodel.engines import report
from qmodel.engines.python.explore import Exploration, Explorer, Goal
from qmodel.engines.python.paths import shortest
from qmodel.engines.trace import Target, TraceWriter

if TYPE_CHECKING:
    from qmodel.engines.options import Options
    from qmodel.ir.program import Program
    from qmodel.result import Outcome, Trace


def run(program: Program, options: Options) -> Outcome:
    """Search a lowered program. Raises SetupError where its scenario violates a property by itself."""
    started = time.monotonic()
    explorer = Explorer(program, options)
    found = explorer.run()
    goals = {Target(property=name): goal for name, goal in found.goals.items()}
    for measure, best in zip(program.measures, found.maxima, strict=True):
        if best is not None:
            goals[Target(measure=measure.name, value=best[0])] = best[1]
    writer = TraceWriter(explorer.interpreter)
    traces = _traces(found, goals, writer)
    places = report.places(program, found.model.layout, found.taken)
    return report.outcome("python", program, writer.threads(), found, traces, started, places)


def _traces(found: Exploration, goals: dict[Target, Goal], writer: TraceWriter) -> dict[Target, Trace | None]:
    unpack = found.model.layout.unpack
    paths = shortest(found, list(goals.values()))
    return {
        target: writer.along([(unpack(state), tid) for state, tid in path], target)
        for target, path in zip(goals, paths, strict=True)
    }
