"""Traces against every way that the interpreter can go: fewest steps, then fewest switches, then smallest threads.

The search here goes forwards and keeps whole ways, where the engine goes backwards and keeps costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qmodel.engines.options import Options
from qmodel.engines.python.engine import run
from qmodel.ir.interpreter import Interpreter, State
from qmodel.result import Verdict
from tests.support import classic, program_of

if TYPE_CHECKING:
    from qmodel.ir.program import Program

Way = tuple[int, tuple[int, ...]]
"""Switches, and the threads that moved, in order: of ways of the same length the least is the one that is wanted."""

HEAD = """\
from qmodel.lang import (
    READ_ONCE, WRITE_ONCE, Int, Model, SpinLock, check, choose, inside, invariant, measure, raise_softirq, softirq,
    spin_is_locked, spin_lock, spin_unlock, thread, wait_until,
)


class Generated(Model):
    a = SpinLock()
    b = SpinLock()
    x = Int(0, high=2)
    y = Int(0, high=2)

    @softirq
    def handler(m, cpu):
        WRITE_ONCE(m.y, 2)

    @invariant("never")
    def never(m):
        return m.x != 2 or m.y != 1

    @measure("most")
    def most(m):
        return 3 * m.y - m.x + inside(m.handler) + spin_is_locked(m.a) + spin_is_locked(m.b)
"""
THREAD = """
    @thread
    def thread{number}(m):
        {first}
        {second}
"""
STATEMENTS = (
    "WRITE_ONCE(m.x, 1)",
    "WRITE_ONCE(m.y, READ_ONCE(m.x) + 1)",
    "if choose(): WRITE_ONCE(m.y, 1)",
    "spin_lock(m.a); WRITE_ONCE(m.x, 2); spin_unlock(m.a)",
    "raise_softirq(m.handler)",
    "if READ_ONCE(m.y): WRITE_ONCE(m.x, 2)",
    "wait_until(m.x != 0)",
    "spin_lock(m.a); spin_lock(m.b); spin_unlock(m.b); spin_unlock(m.a)",
    "check(READ_ONCE(m.x) <= READ_ONCE(m.y), 'unlike')",
    "spin_lock(m.b); spin_lock(m.a); spin_unlock(m.a); spin_unlock(m.b)",
)


def generated(number: int, threads: int) -> str:
    """Return the model that the digits of a number stand for: two statements a thread."""
    parts = [HEAD]
    for thread in range(threads):
        number, first = divmod(number, len(STATEMENTS))
        number, second = divmod(number, len(STATEMENTS))
        parts.append(THREAD.format(number=thread, first=STATEMENTS[first], second=STATEMENTS[second]))
    return "".join(parts)


# --- all ways, by the interpreter ---------------------------------------------------------------------------------


def ways(program: Program) -> dict[str, tuple[int, Way]]:
    """Return for each property that is violated, and each measure, the length of the trace that is wanted, and it.

    Of two ways to a state that end with the same thread the greater one is forgotten: whatever comes after it, the
    other stays less.
    """
    interpreter = Interpreter(program)
    start = interpreter.initial()
    layer: dict[tuple[State, int], Way] = {(start, -1): (0, ())}
    seen = {start}
    found: dict[str, tuple[int, Way]] = {}
    best: dict[str, int] = {}

    def reached(name: str, length: int, way: Way) -> None:
        found[name] = min(found.get(name, (length, way)), (length, way))

    length = 0
    while layer:
        following: dict[tuple[State, int], Way] = {}
        for (state, last), (switches, moves) in layer.items():
            for name in violated(program, interpreter, state):
                reached(name, length, (switches, moves))
            for measure in program.measures:
                value = interpreter.evaluate(state, measure.value)
                if interpreter.judged(state, measure.locks) and value > best.get(measure.name, value - 1):
                    best[measure.name] = value
                    found.pop(measure.name, None)
                if interpreter.judged(state, measure.locks) and value == best[measure.name]:
                    reached(measure.name, length, (switches, moves))
            for tid, _, outcome in interpreter.enabled(state):
                commits = program.threads[tid].kind == "buffer"
                switch = not commits and last not in {-1, tid}
                way = (switches + switch, (*moves, tid))
                for failure in outcome.failures:
                    reached(failure.property, length + 1, way)
                if outcome.state is not None and outcome.state not in seen:
                    key = (outcome.state, last if commits else tid)
                    following[key] = min(following.get(key, way), way)
        layer, length = following, length + 1
        seen |= {state for state, _ in layer}
    return found


def violated(program: Program, interpreter: Interpreter, state: State) -> Iterator[str]:
    """Yield the properties that a state violates."""
    for prop in program.properties:
        if interpreter.violated(state, prop):
            yield prop.name
    stuck = not any(True for _ in interpreter.enabled(state)) and interpreter.unfinished(state)
    if stuck or in_circle(program, interpreter, state):
        yield "deadlock"


def in_circle(program: Program, interpreter: Interpreter, state: State) -> bool:
    """Tell whether some threads wait for each other in a circle."""
    for thread in program.threads:
        path: list[int] = []
        here: int | None = thread.tid
        while here is not None:
            if here in path:
                return True
            path.append(here)
            here = waits_for(program, interpreter, state, here)
    return False


def waits_for(program: Program, interpreter: Interpreter, state: State, tid: int) -> int | None:
    """Return the thread that a thread waits for: a softirq on its CPU, or who has the lock that it takes next."""
    thread, node = program.threads[tid], program.template_of(tid).nodes[state.frames[tid].node]
    if node.next and thread.kind == "task" and not node.bh_off:
        for softirq in program.softirqs_on(thread.cpu):
            if not program.template_of(softirq).nodes[state.frames[softirq].node].rest:
                return softirq
    if node.next and node.access is not None and node.access.name == "spin_lock":
        assert node.access.place is not None
        holder = interpreter.evaluate_for(state, tid, node.access.place) - 1
        return None if holder in {-1, tid} else holder
    return None


# --- what the engine gives ----------------------------------------------------------------------------------------


def traces(program: Program) -> dict[str, tuple[int, Way]]:
    """Return the same from the traces of the engine."""
    outcome = run(program, Options())
    shown = {p.name: p.trace for p in outcome.properties if p.verdict is Verdict.REFUTED}
    shown |= {m.name: m.trace for m in outcome.measures}
    found: dict[str, tuple[int, Way]] = {}
    for name, trace in shown.items():
        assert trace is not None
        found[name] = (len(trace.steps), (trace.switches, tuple(step.thread for step in trace.steps)))
    return found


# --- tests --------------------------------------------------------------------------------------------------------


GOALS = {"never", "deadlock", "check", "domain", "most"}


def compare(directory: Path, numbers: range, threads: int, memory: str) -> None:
    """Compare the traces of some generated models, and make sure that there is a trace to every kind of goal."""
    expected, actual = {}, {}
    for number in numbers:
        path = directory / f"generated{number}.py"
        path.write_text(generated(number, threads), encoding="utf-8")
        program = program_of(path, memory=memory)
        expected[number], actual[number] = ways(program), traces(program)
    assert expected == actual
    assert GOALS == {name for found in expected.values() for name in found}


def test_trace_is_the_least_of_all_ways(tmp_path: Path) -> None:
    """A trace has the fewest steps, of these the fewest switches, of these the smallest sequence of threads."""
    compare(tmp_path, range(0, 10**4, 331), 2, "sc")


@pytest.mark.slow
@pytest.mark.ci
def test_trace_of_three_threads_is_the_least_of_all_ways(tmp_path: Path) -> None:
    """The same where three threads, and a softirq for each, take turns."""
    compare(tmp_path, range(0, 10**6, 52361), 3, "sc")


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("memory", ["tso", "weak"])
def test_commits_are_no_switches(memory: str, tmp_path: Path) -> None:
    """A commit of a store buffer is a step of a trace, and no switch, however many of them lie between two others."""
    compare(tmp_path, range(0, 10**4, 1013), 2, memory)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "numbers", "memory"),
    [
        (2, range(1, 10**4, 47), "sc"),
        (3, range(1, 10**6, 15013), "sc"),
        (2, range(1, 10**4, 211), "tso"),
        (2, range(1, 10**4, 431), "weak"),
    ],
)
def test_trace_is_the_least_of_all_ways_in_many_models(
    threads: int, numbers: range, memory: str, tmp_path: Path
) -> None:
    """The same in models enough that each statement meets each other one."""
    compare(tmp_path, numbers, threads, memory)


@pytest.mark.parametrize(
    ("name", "variant", "scenario"),
    [
        ("abba", "abba", "default"),
        ("buffer", "look-once", "default"),
        ("buffer", "keep-lock", "default"),
        ("peterson", "no-turn", "default"),
        ("peterson", "test-first", "default"),
        ("peterson", "turn-first", "default"),
        ("philosophers", "left-first", "default"),
        ("readers_writers", "wait-before-lock", "default"),
        ("readers_writers", "leave-by-load-store", "default"),
        ("softirq_lock", "enable-too-early", "default"),
        ("ticket", "load-store", "default"),
        ("treiber", "plain", "ab"),
    ],
)
def test_trace_of_a_classic_is_the_least_of_all_ways(name: str, variant: str, scenario: str) -> None:
    """The same in programs that people write."""
    program = program_of(classic(name), variant, scenario)
    expected = ways(program)
    assert expected == traces(program)
    assert expected
