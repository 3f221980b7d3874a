"""Random walks, for state spaces that are too large to be searched: they find violations, and never prove anything.

Each state that was seen keeps the shortest way to it that any walk took, so that the trace to a violation is shorter
than the walk that found it.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from qmodel.engines.memory import resident
from qmodel.engines.options import Options, Progress
from qmodel.engines.python.model import build
from qmodel.engines.trace import Target, TraceWriter
from qmodel.ir.interpreter import Interpreter
from qmodel.ir.program import BOUND
from qmodel.result import MeasureResult, Outcome, PropertyResult, Trace, Verdict

if TYPE_CHECKING:
    from qmodel.ir.interpreter import State
    from qmodel.ir.program import Program

_STAY = (0.0, 0.5, 0.9, 0.97)
"""How likely the same thread goes on, walk by walk: some bugs need many switches, some few."""
_CHUNK = 1024
"""Steps between two looks at the limits."""


@dataclass(frozen=True, slots=True)
class Walks:
    """How many walks, of how many steps at most, and where the random numbers start."""

    number: int
    steps: int
    seed: int


def run(program: Program, walks: Walks, options: Options) -> Outcome:
    """Walk at random through a lowered program. Raises SetupError where its scenario violates a property by itself."""
    started = time.monotonic()
    simulator = Simulator(program, walks, options)
    simulator.run()
    return simulator.outcome(time.monotonic() - started)


class Simulator:
    """Walks at random."""

    def __init__(self, program: Program, walks: Walks, options: Options) -> None:
        self.program, self.walks, self.options = program, walks, options
        self.interpreter = Interpreter(program)
        self.model = build(program, lambda *event: self._events.append(event), self._measured)
        self.start = self.model.layout.pack(self.interpreter.initial())
        self.done = self.cut = self.full = self.taken = self.deepest = 0
        self.why = ""
        self.interrupted = False
        self._events: list[tuple[int, int, bool]] = []
        self._depth: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._goals: dict[str, tuple[int, int, int]] = {}
        self._maxima: list[tuple[int, int] | None] = [None] * len(program.measures)
        self._ends: set[int] = set()
        self._random = random.Random(walks.seed).random  # noqa: S311  not for secrets; the same everywhere for a seed
        self._started = self._told = 0.0

    def run(self) -> None:
        """Walk until all walks are done, a limit is reached or the user interrupts."""
        self._started = self._told = time.monotonic()
        self._arrive(self.start, 0, self.start)
        try:
            while self.done < self.walks.number and not self.why:
                self._walk(_STAY[self.done % len(_STAY)])
                self.done += 1
                self.why = self.why or self._limit()
                if self.options.stop_first and self._goals:
                    self.why = "stopped at the first violation"
        except KeyboardInterrupt:
            self.interrupted, self.why = True, "interrupted"
        except MemoryError:
            self.why = "the memory of the machine is used up"

    def _walk(self, stay: float) -> None:
        state, last = self.start, -1
        for step in range(self.walks.steps):
            if step % _CHUNK == _CHUNK - 1:
                self.why = self._limit()
                if self.why:
                    return
            moved = self._step(state, last, stay)
            if moved is None:
                self.deepest = max(self.deepest, step)
                return
            following, last = moved
            self.taken += 1
            self._arrive(following, self._depth[state] + 1, state)
            state = following
        self.cut += 1
        self.deepest = max(self.deepest, self.walks.steps)
        self._end(state, ended=False)

    def _step(self, state: int, last: int, stay: float) -> tuple[int, int] | None:
        """Let one thread take a step: return what it leads to, and the thread; None where the walk ends."""
        waiting = list(range(len(self.model.steps)))
        while waiting:
            tid = last
            if last not in waiting or self._random() >= stay:
                tid = waiting[int(self._random() * len(waiting))]
            waiting.remove(tid)
            out = self._successors(state, tid)
            failed = bool(self._events)
            if failed:
                self._failed(state)
            if out:
                return out[int(self._random() * len(out))], tid
            if failed:
                self._end(state, ended=False)
                return None
        self._end(state, ended=True)
        return None

    def _successors(self, state: int, tid: int) -> list[int]:
        out: list[int] = []
        self.model.steps[tid][self.model.layout.counters[tid].get(state)](state, out.append)
        return out

    # --- what was found ---------------------------------------------------------------------------------------------

    def _arrive(self, state: int, depth: int, origin: int) -> None:
        """Look at a state that is new, or was reached by a shorter way."""
        if depth >= self._depth.get(state, depth + 1):
            return
        self._depth[state], self._before[state] = depth, origin
        for number in self.model.observe(state):
            self._found(self.model.properties[number], state, -1)

    def _failed(self, state: int) -> None:
        for number, tid, _ in self._events:
            if self.model.properties[number] == BOUND:
                self.full += 1
            else:
                self._found(self.model.properties[number], state, tid)
        self._events.clear()

    def _end(self, state: int, *, ended: bool) -> None:
        """Look for a deadlock at the end of a walk: a circle of waits, once there, stays to the end."""
        if state in self._ends:
            return
        self._ends.add(state)
        unpacked = self.model.layout.unpack(state)
        if self.interpreter.waiting_cycle(unpacked) or (ended and self.interpreter.unfinished(unpacked)):
            self._found("deadlock", state, -1)

    def _found(self, name: str, state: int, tid: int) -> None:
        known = self._goals.get(name)
        if known is None or self._depth[state] < known[0]:
            self._goals[name] = (self._depth[state], state, tid)

    def _measured(self, number: int, value: int, state: int) -> None:
        known = self._maxima[number]
        if known is None or value > known[0]:
            self._maxima[number] = (value, state)

    # --- the report -------------------------------------------------------------------------------------------------

    def outcome(self, seconds: float) -> Outcome:
        """Return what was found: what is not refuted is inconclusive."""
        writer = TraceWriter(self.interpreter)
        walked = self._words()
        why = f"{walked} do not show that it holds"
        properties = []
        for name, doc in [*((p.name, p.doc) for p in self.program.properties), *self.program.builtin]:
            if name in self._goals:
                trace = self._trace(writer, Target(property=name), *self._goals[name][1:])
                properties.append(PropertyResult(name, doc, Verdict.REFUTED, trace.story[-2], trace))
            elif name != BOUND:
                properties.append(PropertyResult(name, doc, Verdict.INCONCLUSIVE, why))
        measures = []
        for measure, best in zip(self.program.measures, self._maxima, strict=True):
            if best is not None:
                target = Target(measure=measure.name, value=best[0])
                trace = self._trace(writer, target, best[1], -1)
                measures.append(MeasureResult(measure.name, measure.doc, best[0], trace))
        return Outcome(
            engine="simulate",
            reductions=self.program.reductions,
            threads=writer.threads(),
            verdict=Verdict.REFUTED if self._goals else Verdict.INCONCLUSIVE,
            strength=None,
            complete=False,
            interrupted=self.interrupted,
            why=walked,
            states=len(self._depth),
            transitions=self.taken,
            depth=self.deepest,
            seconds=seconds,
            bytes_per_state=None,
            properties=tuple(properties),
            measures=tuple(measures),
            buffer_full=self.full,
        )

    @property
    def seen(self) -> frozenset[int]:
        """The states that some walk saw, packed."""
        return frozenset(self._depth)

    def _words(self) -> str:
        parts = [f"{self.done:,} random {'walk' if self.done == 1 else 'walks'} (seed {self.walks.seed}"]
        parts += [f"{self.cut:,} cut at {self.walks.steps:,} steps"] if self.cut else []
        parts += [f"a store buffer was too short {self.full:,} times"] if self.full else []
        parts += [self.why] if self.why else []
        return ", ".join(parts) + ")"

    def _trace(self, writer: TraceWriter, target: Target, goal: int, tid: int) -> Trace:
        """Return the trace of the shortest known way to a state, or to the step that a thread takes there."""
        way = [goal]
        while way[-1] != self.start:
            way.append(self._before[way[-1]])
        way.reverse()
        if target.property == "deadlock" and tid < 0:
            way = self._to_circle(way)
        states = [self.model.layout.unpack(packed) for packed in way]
        movers = [self._mover(a, b) for a, b in pairwise(way)]
        path: list[tuple[State, int]] = list(zip(states, [*movers, tid], strict=True))
        return writer.along(path, target)

    def _to_circle(self, way: list[int]) -> list[int]:
        """Return the way up to where a circle of waits closes, if there is one."""
        for length, packed in enumerate(way, 1):
            if self.interpreter.waiting_cycle(self.model.layout.unpack(packed)):
                return way[:length]
        return way

    def _mover(self, state: int, following: int) -> int:
        """Return the thread that leads from a state to the next."""
        found = next(t for t in range(len(self.model.steps)) if following in self._successors(state, t))
        self._events.clear()
        return found

    # --- limits -----------------------------------------------------------------------------------------------------

    def _limit(self) -> str:
        """Return why the walks must end here, or nothing; tell how far they are."""
        options, now, states = self.options, time.monotonic(), len(self._depth)
        if options.max_states is not None and states >= options.max_states:
            return f"the limit of {options.max_states:,} states is reached"
        if options.timeout is not None and now - self._started >= options.timeout:
            return f"the limit of {options.timeout:g} seconds is reached"
        if options.max_memory is not None and resident() >= options.max_memory:
            return f"the limit of {options.max_memory / 2**20:,.0f} MiB of memory is reached"
        if options.progress is not None and now - self._told >= 0.2:
            self._told = now
            rate = states / max(now - self._started, 1e-9)
            options.progress(Progress(states, rate, self.walks.number - self.done, self.deepest, resident()))
        return ""
