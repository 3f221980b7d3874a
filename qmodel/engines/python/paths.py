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

_Costs = dict[int, int]
"""From the thread that moves first to the fewest switches of a shortest way from there (after its move)."""


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

    def cost(self, state: int, tid: int, depth: int) -> int | None:
        """Return the switches of a shortest way from a state that a thread has just led to, or None: no way."""
        costs = self.depths[depth].get(state)
        if costs is None:
            return None
        return min(cost + (first != tid) for first, cost in costs.items())

    def after(self, state: int, tid: int, successor: int | None, depth: int) -> int | None:
        """Return the switches that are left when a thread has made a step; successor: None for one that violates."""
        if depth == self.goal.length - 1:
            found = successor in self.states if successor is not None else (state, tid) in self.steps
            return 0 if found else None
        return None if successor is None else self.cost(successor, tid, depth + 1)


def shortest(found: Exploration, goals: Sequence[Goal]) -> list[Path]:
    """Return for each goal the shortest way to it that is smallest in the order above."""
    sweeps = [_Sweep(g, [{} for _ in range(g.length)], set(g.steps), set(g.states)) for g in goals]
    for depth in range(max((g.length for g in goals), default=0) - 1, -1, -1):
        concerned = [s for s in sweeps if depth < s.goal.length]
        for state in found.layers[depth]:
            _look_back(found, state, depth, concerned)
    return [_walk(found, sweep) for sweep in sweeps]


def _look_back(found: Exploration, state: int, depth: int, sweeps: Sequence[_Sweep]) -> None:
    for tid, successors in _labelled(found, state):
        for sweep in sweeps:
            for successor in successors:
                cost = sweep.after(state, tid, successor, depth)
                if cost is not None:
                    costs = sweep.depths[depth].setdefault(state, {})
                    costs[tid] = min(cost, costs.get(tid, cost))


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
        options = [(cost + (last not in {-1, t}), t) for s in here for t, cost in costs[s].items()]
        cheapest, tid = min(options)
        rest = cheapest - (last not in {-1, tid})
        following: dict[int, tuple[int, int] | None] = {}
        for state in here:
            if costs[state].get(tid) != rest:
                continue
            for successor in dict(_labelled(found, state))[tid]:
                if sweep.after(state, tid, successor, depth) != rest:
                    continue
                if successor is None:
                    return [*_back(trail, state), (state, tid)]
                following.setdefault(successor, (state, tid))
        here, last = following, tid
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
