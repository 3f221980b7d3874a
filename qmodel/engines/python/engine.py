"""The python engine: searches, finds shortest traces, and gives an Outcome."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from qmodel.engines import report
from qmodel.engines.python.explore import Exploration, Explorer, Goal
from qmodel.engines.python.paths import shortest
from qmodel.engines.trace import Target, TraceWriter
from qmodel.result import Place

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
    return report.outcome("python", program, writer.threads(), found, traces, started, _places(found))


def _traces(found: Exploration, goals: dict[Target, Goal], writer: TraceWriter) -> dict[Target, Trace | None]:
    unpack = found.model.layout.unpack
    paths = shortest(found, list(goals.values()))
    return {
        target: writer.along([(unpack(state), tid) for state, tid in path], target)
        for target, path in zip(goals, paths, strict=True)
    }


def _places(found: Exploration) -> tuple[Place, ...]:
    """Return every step of the specification, and whether any thread has taken it."""
    program, layout = found.model.program, found.model.layout
    taken: dict[tuple[str, int, int, str, str], bool] = {}
    for thread in program.threads:
        if thread.kind == "buffer":
            continue
        template = program.template_of(thread.tid)
        for number, node in enumerate(layout.places[thread.template].boundaries):
            site = template.nodes[node].site
            if template.nodes[node].next:
                key = (site.file, site.line, site.column, site.function, site.source)
                taken[key] = taken.get(key, False) or (thread.tid, number) in found.taken
    return tuple(Place(*key, taken=was) for key, was in sorted(taken.items()))
