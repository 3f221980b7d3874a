"""The states that a search reaches, against states that are listed here by hand, before any code was run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qmodel.engines.options import Options
from qmodel.engines.python.explore import Explorer
from tests.support import program_of

if TYPE_CHECKING:
    from qmodel.ir.interpreter import Frame
    from qmodel.ir.program import Program

Listed = tuple[object, ...]
"""The shared variables in the order of their declaration, and for each thread where it is."""

END = "end"
REST = "rest"


def reached(program: Program) -> list[Listed]:
    """Return every state that a search reaches, layer by layer, in the form of the lists below."""
    explorer = Explorer(program, Options())
    found = explorer.run()
    states = [explorer.model.layout.unpack(packed) for layer in found.layers for packed in layer]
    assert len(states) == found.states
    return [(*(v for values in s.shared for v in values), *places(program, s.frames)) for s in states]


def places(program: Program, frames: tuple[Frame, ...]) -> list[object]:
    """Return for each thread the line whose access comes next; with the locals it still needs, if there are any."""
    found: list[object] = []
    for tid, frame in enumerate(frames):
        node = program.template_of(tid).nodes[frame.node]
        place = node.site.source if node.next else END
        place = REST if node.rest else place
        found.append((place, *(value for _, value in frame.locals)) if frame.locals else place)
    return found


@pytest.fixture
def states_of(tmp_path: Path) -> Callable[[str], list[Listed]]:
    """Return a function from a specification to the states that are reached."""

    def states(source: str) -> list[Listed]:
        path = tmp_path / "spec.py"
        path.write_text(source, encoding="utf-8")
        return reached(program_of(path))

    return states


COUNTER = """
from qmodel.lang import Int, Model, SpinLock, spin_lock, spin_unlock, thread


class Counter(Model):
    lock = SpinLock()
    n = Int(0, high=2, guarded_by=lock)

    @thread(each=2)
    def add(m, cpu):
        spin_lock(m.lock)
        n = m.n
        m.n = n + 1
        spin_unlock(m.lock)
"""
FREE, CPU0, CPU1 = 0, 1, 2
LOCK, LOAD, STORE, UNLOCK = "spin_lock(m.lock)", "n = m.n", "m.n = n + 1", "spin_unlock(m.lock)"
COUNTER_STATES: list[Listed] = [
    (FREE, 0, LOCK, LOCK),
    # CPU0 is the first.
    (CPU0, 0, LOAD, LOCK),
    (CPU0, 0, (STORE, 0), LOCK),
    (CPU0, 1, UNLOCK, LOCK),
    (FREE, 1, END, LOCK),
    (CPU1, 1, END, LOAD),
    (CPU1, 1, END, (STORE, 1)),
    (CPU1, 2, END, UNLOCK),
    # CPU1 is the first.
    (CPU1, 0, LOCK, LOAD),
    (CPU1, 0, LOCK, (STORE, 0)),
    (CPU1, 1, LOCK, UNLOCK),
    (FREE, 1, LOCK, END),
    (CPU0, 1, LOAD, END),
    (CPU0, 1, (STORE, 1), END),
    (CPU0, 2, UNLOCK, END),
    # Whoever was.
    (FREE, 2, END, END),
]


def test_lock(states_of: Callable[[str], list[Listed]]) -> None:
    """With a lock one thread counts after the other: no state has both of them at work."""
    assert sorted(COUNTER_STATES, key=str) == sorted(states_of(COUNTER), key=str)


RETRY = """
from qmodel.lang import Budget, Int, Model, atomic_inc, choose, thread


class Retry(Model):
    busy = Budget(1)
    tries = Int(0, high=3)

    @thread(each=2)
    def send(m, cpu):
        while True:
            atomic_inc(m.tries)
            if not choose(m.busy):
                break
"""
TRY = "atomic_inc(m.tries)"
RETRY_STATES: list[Listed] = [
    # The last number but for the places is what is left of the budget. Nobody has been told BUSY:
    (0, 1, TRY, TRY),
    (1, 1, END, TRY),
    (1, 1, TRY, END),
    (2, 1, END, END),
    # One of the two has, and has tried once more than it had to:
    (1, 0, TRY, TRY),
    (2, 0, END, TRY),
    (2, 0, TRY, END),
    (3, 0, END, END),
]


def test_budget(states_of: Callable[[str], list[Listed]]) -> None:
    """The environment answers true once in a whole run, to either thread or to none; the answer is no step."""
    assert sorted(RETRY_STATES, key=str) == sorted(states_of(RETRY), key=str)


SOFTIRQ = """
from qmodel.lang import (
    WRITE_ONCE, Int, Model, local_bh_disable, local_bh_enable, raise_softirq, softirq, thread,
)


class Softirq(Model):
    x = Int(0, high=2)
    y = Int(0, high=1)

    @thread
    def task(m):
        local_bh_disable()
        raise_softirq(m.handler)
        WRITE_ONCE(m.x, 1)
        local_bh_enable()
        WRITE_ONCE(m.x, 2)

    @softirq
    def handler(m, cpu):
        WRITE_ONCE(m.y, 1)
"""
DISABLE, RAISE, FIRST, SECOND = (
    "local_bh_disable()", "raise_softirq(m.handler)", "WRITE_ONCE(m.x, 1)", "WRITE_ONCE(m.x, 2)",
)  # fmt: skip
HANDLE = "WRITE_ONCE(m.y, 1)"
SOFTIRQ_STATES: list[Listed] = [
    # The number before the places says whether the softirq is raised.
    (0, 0, 0, DISABLE, REST),
    (0, 0, 0, RAISE, REST),
    (0, 0, 1, FIRST, REST),  # bottom halves are off: it cannot begin
    (1, 0, 1, SECOND, REST),
    # It begins before the second store, which waits for its end.
    (1, 0, 0, SECOND, HANDLE),
    (1, 1, 0, SECOND, REST),
    # It begins after the second store.
    (2, 0, 1, END, REST),
    (2, 0, 0, END, HANDLE),
    # Either way.
    (2, 1, 0, END, REST),
]


def test_softirq(states_of: Callable[[str], list[Listed]]) -> None:
    """A softirq begins where it is raised and bottom halves are on; until it ends its CPU's task does not move."""
    assert sorted(SOFTIRQ_STATES, key=str) == sorted(states_of(SOFTIRQ), key=str)
