"""Breadth-first search over packed states, layer by layer.

All states are kept in a set, and each layer as a list. A shortest trace is found afterwards, backwards through the
layers, so that nothing is stored for it and all shortest paths can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qmodel.engines.memory import resident
from qmodel.engines.options import Options, Progress
from qmodel.engines.python.model import Model, Step, build
from qmodel.ir.interpreter import Interpreter
from qmodel.ir.program import BOUND

if TYPE_CHECKING:
    from qmodel.ir.program import Program

_CHUNK = 2048
"""States that are expanded between two looks at the limits."""


@dataclass
class Goal:
    """States or steps that a shortest trace is wanted to, all at the same length.

    length: steps of such a trace. states: states at depth `length`. steps: pairs (state at depth length - 1, thread).
    """

    length: int
    states: list[int] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Exploration:
    """What a search found.

    taken: pairs (thread, number of a boundary) of the steps that were ever taken. cut: how many steps ended in an
    error of the language, and so were not followed; bound: those of them for which a store buffer was too short.
    """

    model: Model
    layers: list[list[int]] = field(default_factory=list)
    states: int = 0
    transitions: int = 0
    cut: int = 0
    bound: int = 0
    complete: bool = False
    interrupted: bool = False
    why: str = ""
    taken: set[tuple[int, int]] = field(default_factory=set)
    goals: dict[str, Goal] = field(default_factory=dict)
    maxima: list[tuple[int, Goal] | None] = field(default_factory=list)
    bytes_per_state: float | None = None

    @property
    def depth(self) -> int:
        """The greatest number of steps from the initial state to a state, over shortest ways."""
        return len(self.layers) - 1


class Explorer:
    """Searches the states of a lowered program."""

    def __init__(self, program: Program, options: Options) -> None:
        self.options = options
        self.interpreter = Interpreter(program)
        self._events: list[tuple[int, int, bool]] = []
        self._depth = 0
        self._maxima: list[tuple[int, Goal] | None] = [None] * len(program.measures)
        self.model = build(program, lambda *event: self._events.append(event), self._measured)
        self.found = Exploration(self.model, maxima=self._maxima)
        self._note_first_uses()
        self._started = 0.0
        self._told = 0.0

    def _note_first_uses(self) -> None:
        """Put before each step function one that notes when the step is taken first, and then steps aside."""

        def noting(step: Step, tid: int, number: int) -> Step:
            def first(state: int, emit: Callable[[int], None]) -> bool:
                found: list[int] = []
                before = len(self._events)
                waiting = step(state, found.append)
                if found or len(self._events) > before:
                    self.found.taken.add((tid, number))
                    self.model.steps[tid][number] = step
                for successor in found:
                    emit(successor)
                return waiting

            return first

        for tid, steps in enumerate(self.model.steps):
            for number, step in enumerate(steps):
                steps[number] = noting(step, tid, number)

    def run(self) -> Exploration:
        """Search until everything is visited, a limit is reached or the user interrupts. Raises SetupError."""
        before = resident()
        self._started = self._told = time.monotonic()
        start = self.model.layout.pack(self.interpreter.initial())
        seen = {start}
        self.found.layers.append([start])
        try:
            self._search(seen)
        except KeyboardInterrupt:
            self.found.interrupted = True
            self.found.why = "interrupted"
        except MemoryError:
            self.found.why = "the memory of the machine is used up"
        self.found.states = len(seen)
        if not self.found.layers[-1]:
            self.found.layers.pop()
        if len(seen) >= 100_000:
            self.found.bytes_per_state = (resident() - before) / len(seen)
        return self.found

    def _search(self, seen: set[int]) -> None:
        found = self.found
        while found.layers[-1]:
            frontier = found.layers[-1]
            following: list[int] = []
            found.layers.append(following)
            self._depth = len(found.layers) - 2
            for start in range(0, len(frontier), _CHUNK):
                self._expand(frontier[start : start + _CHUNK], seen, following)
                why = self._limit(len(seen), len(frontier) - start + len(following))
                if why:
                    found.why = why
                    return
            if self.options.stop_first and found.goals:
                found.why = "stopped at the first violation"
                return
        found.complete = True

    def _expand(self, states: list[int], seen: set[int], following: list[int]) -> None:
        """Expand states of one layer: the loop that everything waits for."""
        successors, observe, events = self.model.successors, self.model.observe, self._events
        out: list[int] = []
        emit, clear, add, append = out.append, out.clear, seen.add, following.append
        transitions = 0
        for s in states:
            waiting = successors(s, emit)
            for t in out:
                if t not in seen:
                    add(t)
                    append(t)
            if waiting or not (out or events):
                self._stuck(s, ended=not (out or events))
            if events:
                self._violations(s)
            bad = observe(s)
            if bad:
                for number in bad:
                    self._at_state(self.model.properties[number], s)
            transitions += len(out)
            clear()
        self.found.transitions += transitions

    # --- what was found ---------------------------------------------------------------------------------------------

    def _violations(self, state: int) -> None:
        for number, tid, fatal in self._events:
            self.found.cut += fatal
            name = self.model.properties[number]
            if name == BOUND:
                self.found.bound += 1
                continue
            goal = self.found.goals.setdefault(name, Goal(self._depth + 1))
            if goal.length == self._depth + 1 and (state, tid) not in goal.steps[-1:]:
                goal.steps.append((state, tid))
        self._events.clear()

    def _at_state(self, name: str, state: int) -> None:
        goal = self.found.goals.setdefault(name, Goal(self._depth))
        if goal.length > self._depth:  # only a step that leads a depth further was known
            goal.length, goal.steps = self._depth, []
        if goal.length == self._depth:
            goal.states.append(state)

    def _stuck(self, packed: int, *, ended: bool) -> None:
        """Report a circle of waits, and an end at which a task has not ended."""
        if "deadlock" in self.found.goals and self.found.goals["deadlock"].length < self._depth:
            return
        state = self.model.layout.unpack(packed)
        if self.interpreter.waiting_cycle(state) or (ended and self.interpreter.unfinished(state)):
            self._at_state("deadlock", packed)

    def _measured(self, number: int, value: int, state: int) -> None:
        known = self._maxima[number]
        if known is None or value > known[0]:
            self._maxima[number] = (value, Goal(self._depth, [state]))
        elif value == known[0] and known[1].length == self._depth:
            known[1].states.append(state)

    # --- limits -----------------------------------------------------------------------------------------------------

    def _limit(self, states: int, frontier: int) -> str:
        """Return why the search must end here, or nothing; tell how far it is."""
        options, now = self.options, time.monotonic()
        if options.max_states is not None and states >= options.max_states:
            return f"the limit of {options.max_states:,} states is reached"
        if options.timeout is not None and now - self._started >= options.timeout:
            return f"the limit of {options.timeout:g} seconds is reached"
        if options.max_memory is not None and resident() >= options.max_memory:
            return f"the limit of {options.max_memory / 2**20:,.0f} MiB of memory is reached"
        if options.progress is not None and now - self._told >= 0.2:
            self._told = now
            rate = states / max(now - self._started, 1e-9)
            options.progress(Progress(states, rate, frontier, self._depth, resident()))
        return ""
