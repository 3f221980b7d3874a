"""From what a search found to an Outcome: a verdict for each property, and for the run."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from qmodel.engines.trace import Target
from qmodel.ir.program import BOUND
from qmodel.result import MeasureResult, Outcome, Place, PropertyResult, Strength, ThreadInfo, Trace, Verdict

if TYPE_CHECKING:
    from qmodel.engines.layout import Layout
    from qmodel.ir.program import Program


class Found(Protocol):
    """What a search says of itself.

    cut: how many steps ended in an error of the language, and so were not followed; bound: those of them for which a
    store buffer was too short. why: what ended a search that is not complete.
    """

    states: int
    transitions: int
    cut: int
    bound: int
    complete: bool
    interrupted: bool
    why: str
    bytes_per_state: float | None

    @property
    def depth(self) -> int:
        """The greatest number of steps from the initial state to a state, over shortest ways."""


def outcome(
    engine: str,
    program: Program,
    threads: tuple[ThreadInfo, ...],
    found: Found,
    traces: Mapping[Target, Trace | None],
    started: float,
    places: tuple[Place, ...] = (),
) -> Outcome:
    """Return the outcome of a search that started at a time.

    traces: of every property that is violated and of every measure's greatest value, None where it could not be found.
    places: every step of the specification, if the engine counts which were taken.
    """
    properties = tuple(_property(found, name, doc, traces) for name, doc in judged(program))
    verdict = max((p.verdict for p in properties), key=list(Verdict).index, default=Verdict.HOLDS)
    return Outcome(
        engine=engine,
        reductions=program.reductions,
        threads=threads,
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
        measures=tuple(_measures(program, traces)),
        buffer_full=found.bound,
        places=places,
    )


def places(program: Program, layout: Layout, taken: Collection[tuple[int, int]]) -> tuple[Place, ...]:
    """Return every step of the specification. taken: pairs of a thread and the number of the boundary it has left."""
    found: dict[tuple[str, int, int, str, str], bool] = {}
    for thread in program.threads:
        if thread.kind == "buffer":
            continue
        nodes = program.template_of(thread.tid).nodes
        for number, node in enumerate(layout.places[thread.template].boundaries):
            site = nodes[node].site
            if nodes[node].next:
                key = (site.file, site.line, site.column, site.function, site.source)
                found[key] = found.get(key, False) or (thread.tid, number) in taken
    return tuple(Place(*key, taken=was) for key, was in sorted(found.items()))


def judged(program: Program) -> list[tuple[str, str]]:
    """Return the properties that a program is judged on, each with what it means: its own first."""
    return [*((p.name, p.doc) for p in program.properties), *(b for b in program.builtin if b[0] != BOUND)]


def _measures(program: Program, traces: Mapping[Target, Trace | None]) -> Sequence[MeasureResult]:
    best = {target.measure: (target.value, trace) for target, trace in traces.items() if target.measure}
    return [MeasureResult(m.name, m.doc, *best[m.name]) for m in program.measures if m.name in best]


def _property(found: Found, name: str, doc: str, traces: Mapping[Target, Trace | None]) -> PropertyResult:
    target = Target(property=name)
    if target in traces:
        trace = traces[target]
        why = "it is violated, but there was no memory to find a trace with" if trace is None else trace.story[-2]
        return PropertyResult(name, doc, Verdict.REFUTED, why, trace)
    if found.complete and not found.cut:
        return PropertyResult(name, doc, Verdict.HOLDS)
    return PropertyResult(name, doc, Verdict.INCONCLUSIVE, found.why or _cut(found))


def _cut(found: Found) -> str:
    if found.bound:
        return f"a store buffer was too short {found.bound:,} times"
    steps = "one step ends" if found.cut == 1 else f"{found.cut:,} steps end"
    return f"{steps} in an error of the language, and what comes after it is not known"
