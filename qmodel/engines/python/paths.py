"""Shortest ways to what a search found: fewest steps, then fewest context switches, then smallest thread numbers.

One sweep backwards over the layers finds, for every goal at once, the states on shortest ways and what each way from
them costs; one walk forwards then takes the cheapest way, the smallest thread where two cost the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmodel.engines.python.explore import Exploration, Goal

Path = list[tuple[int, int]]
"""Steps: the packed state before each, and the thread that takes it; after the last step the state, and -1."""

_Costs = dict[tuple[int, int], int]
"""From (thread that moved last, thread that moves now) to the switches of a shortest way from here, this one included.

A commit of a store buffer is no switch, and leaves who moved last as it was; -1 stands for nobody.
"""


@dataclass
class _Sweep:
    """A goal on the way backwards: for each depth the states on shortest ways, with their costs.

    A goal is always reached by a last step, from a state of the last depth: one that violates, or one that leads to a
    state that does.
    """

    goal: Goal
    depths: list[dict[int, _Costs]]
    steps: set[tuple[int, int]]
    states: set[int]

    def after(self, state: int, tid: int, successor: int | None, depth: int, last: int) -> int | None:
        """Return the switches that are left when a thread has made a step and `last` counts as who moved last.

        successor: None for a step that violates. Returns None where this is no shortest way.
        """
        if depth == self.goal.length - 1:
            found = successor in self.states if successor is not None else (state, tid) in self.steps
            return 0 if found else None
        costs = None if successor is None else self.depths[depth + 1].get(successor)
        return None if costs is None else min(cost for (before, _), cost in costs.items() if before == last)


def shortest(found: Exploration, goals: Sequence[Goal]) -> list[Path]:
    """Return for each goal the shortest way to it that is smallest in the order above."""
    sweeps = [_Sweep(g, [{} for _ in range(g.length)], set(g.steps), set(g.states)) for g in goals]
    for depth in range(max((g.length for g in goals), default=0) - 1, -1, -1):
        concerned = [s for s in sweeps if depth < s.goal.length]
        for state in found.layers[depth]:
            _look_back(found, state, depth, concerned)
    return [_walk(found, sweep) for sweep in sweeps]


def _look_back(found: Exploration, state: int, depth: int, sweeps: Sequence[_Sweep]) -> None:
    program = found.model.program
    movers = [-1, *(t.tid for t in program.threads if t.tid not in program.buffers)]
    for tid, successors in _labelled(found, state):
        for sweep in sweeps:
            for successor in successors:
                for last in movers:
                    now, switch = _move(found, last, tid)
                    rest = sweep.after(state, tid, successor, depth, now)
                    if rest is None:
                        break
                    costs = sweep.depths[depth].setdefault(state, {})
                    costs[last, tid] = min(rest + switch, costs.get((last, tid), rest + switch))


def _move(found: Exploration, last: int, tid: int) -> tuple[int, int]:
    """Return who counts as having moved last after a step, and whether the step is a switch."""
    if tid in found.model.program.buffers:
        return last, 0
    return tid, int(last not in {-1, tid})


def _labelled(found: Exploration, state: int) -> Iterable[tuple[int, list[int | None]]]:
    """Yield each thread with what its step leads to: states, and None for an end in a violation."""
    model = found.model
    for tid, steps in enumerate(model.steps):
        successors: list[int | None] = []
        steps[model.layout.counters[tid].get(state)](state, successors.append)
        yield tid, [*successors, None]


def _walk(found: Exploration, sweep: _Sweep) -> Path:
    """Walk forwards: `here` has the states that the threads taken so far can lead to, at the lowest cost."""
    here: dict[int, tuple[int, int] | None] = {found.layers[0][0]: None}
    trail = [here]
    last = -1
    for depth, costs in enumerate(sweep.depths):
        options = [(cost, t) for s in here for (before, t), cost in costs[s].items() if before == last]
        cheapest, tid = min(options)
        now, switch = _move(found, last, tid)
        following: dict[int, tuple[int, int] | None] = {}
        for state in here:
            if costs[state].get((last, tid)) != cheapest:
                continue
            for successor in dict(_labelled(found, state))[tid]:
                if sweep.after(state, tid, successor, depth, now) != cheapest - switch:
                    continue
                if successor is None:
                    return [*_back(trail, state), (state, tid)]
                following.setdefault(successor, (state, tid))
        here, last = following, now
        trail.append(here)
    end = next(iter(here))
    return [*_back(trail, end), (end, -1)]


def _back(trail: list[dict[int, tuple[int, int] | None]], state: int) -> Path:
    path: Path = []
    for layer in reversed(trail):
        origin = layer[state]
        if origin is None:
            break
        path.append(origin)
        state = origin[0]
    return path[::-1]
