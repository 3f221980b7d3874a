"""`qmodel simulate`: random walks find violations, come out the same each time, and prove nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qmodel.engines.options import Options
from qmodel.engines.python import simulate
from qmodel.engines.python.explore import Explorer
from qmodel.engines.python.simulate import Simulator, Walks
from qmodel.engines.trace import ReplayError, Target, TraceWriter
from qmodel.ir.interpreter import Interpreter
from tests.cli.conftest import Command
from tests.support import check_file, program_of, refuted, trace_of

LOST = '''
from qmodel.lang import (
    Bits, Flags, Holds, Int, Model, Param, Refutes, SpinLock, clear_bit, measure, quiescent, raise_softirq, softirq,
    spin_lock, spin_lock_bh, spin_unlock, spin_unlock_bh, test_and_set_bit, thread,
)


class State(Bits):
    """Bits of the state."""

    SCHED = 0


class Lost(Model):
    """Work that a softirq does, unless it comes at the wrong moment."""

    cpus = Param(2, low=1, high=4, grows=True, doc="CPUs that queue work")

    lock = SpinLock()
    pending = Int(0, high=cpus, guarded_by=lock)
    state = Flags(State)

    @thread(each=cpus)
    def queue_work(m, cpu):
        spin_lock_bh(m.lock)
        m.pending += 1
        spin_unlock_bh(m.lock)
        if not test_and_set_bit(State.SCHED, m.state):
            raise_softirq(m.net_action)

    @softirq
    def net_action(m, cpu):
        m.poll()

    def poll(m): ...

    def work(m):
        spin_lock(m.lock)
        m.pending = 0
        spin_unlock(m.lock)

    @quiescent("left")
    def nothing_is_left(m):
        """In the end no work is left."""
        return m.pending == 0

    @measure("backlog")
    def backlog(m):
        """How much waits."""
        return m.pending


class Late(Lost):
    """Loses work."""

    def poll(m):
        m.work()
        clear_bit(State.SCHED, m.state)

    expect = [Refutes("left")]


class Early(Lost):
    """Loses none."""

    def poll(m):
        clear_bit(State.SCHED, m.state)
        m.work()

    expect = [Holds(), Holds(cpus=3)]


class Denied(Lost):
    """Loses work, and says that it does not."""

    def poll(m):
        m.work()
        m.work()
        clear_bit(State.SCHED, m.state)

    expect = [Holds()]
'''

CIRCLE = '''
from qmodel.lang import Bool, Int, Model, SpinLock, spin_lock, spin_unlock, thread


class Circle(Model):
    """Two locks in two orders, and a thread that never stops looking."""

    a = SpinLock()
    b = SpinLock()
    go = Int(0, high=1)
    n = Int(0, high=1, guarded_by=a)

    @thread
    def first(m):
        spin_lock(m.a)
        spin_lock(m.b)
        spin_unlock(m.b)
        spin_unlock(m.a)
        m.go = 1

    @thread
    def second(m):
        spin_lock(m.b)
        spin_lock(m.a)
        spin_unlock(m.a)
        spin_unlock(m.b)

    @thread
    def spinner(m):
        m.look()

    def look(m): ...


class Spin(Circle):
    """Looks for ever, and its heart beats."""

    beat = Bool()

    def look(m):
        while not m.go:
            m.beat = not m.beat


class Race(Circle):
    """Looks where it may not."""

    def look(m):
        while not m.go:
            m.go = m.n
'''

CHOICE = '''
from qmodel.lang import Budget, Int, Model, check, choose, thread


class Choice(Model):
    """One answer in two ends in an error."""

    luck = Budget(1, doc="how often the answer is yes")
    n = Int(0, high=3)

    @thread
    def task(m):
        m.n = 1
        if choose(m.luck, "lucky()"):
            check(m.n == 0, "n is 0")
        m.n = 2
        m.n = 3
'''


DETOUR = '''
from qmodel.lang import Bool, Int, Model, choose, invariant, thread


class Detour(Model):
    """A long way and a short one to the same state."""

    n = Int(0, high=3)
    done = Bool()

    @thread
    def task(m):
        if choose():
            m.n = 1
            m.n = 2
            m.n = 3
            m.n = 0
        m.done = True

    @invariant("done")
    def never_done(m):
        """Nothing is ever done."""
        return not m.done
'''


def one_run(output: str) -> dict[str, Any]:
    """Return the only run of a JSON document."""
    (run,) = json.loads(output)["runs"]
    assert isinstance(run, dict)
    return run


def verdicts(run: dict[str, Any]) -> dict[str, str]:
    """Return the verdict on each property."""
    return {prop["name"]: prop["verdict"] for prop in run["properties"]}


def test_violation_that_is_expected(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A violation is found, its picture drawn, and the variant that is said to have it is a success."""
    done = qmodel("simulate", spec(LOST), "--variant", "late")
    assert 0 == done.code
    assert "late     refuted: left  as expected" in done.out.splitlines()
    assert "clear_bit(SCHED, &state)  /* violates left */" in done.out


def test_violation_that_is_not_expected(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A violation of what is expected to hold is no success."""
    done = qmodel("simulate", spec(LOST), "--variant", "denied")
    assert 1 == done.code
    assert "denied   refuted: left  UNEXPECTED" in done.out.splitlines()


def test_nothing_is_proved(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Without a violation the verdict on the variant and on each property is inconclusive, and so is the exit code."""
    path = spec(LOST)
    done = qmodel("simulate", path, "--variant", "early")
    run = one_run(qmodel("simulate", path, "--variant", "early", "--json").out)
    assert 3 == done.code
    assert "early    inconclusive  undecided" in done.out.splitlines()
    assert ("inconclusive", None, False) == (run["verdict"], run["strength"], run["complete"])
    assert {"inconclusive"} == set(verdicts(run).values())


def test_refuted_variant_has_properties_that_are_open(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Beside a violation the other properties are inconclusive: none holds."""
    run = one_run(qmodel("simulate", spec(LOST), "--variant", "late", "--json").out)
    found = verdicts(run)
    assert "refuted" == found.pop("left")
    assert {"inconclusive"} == set(found.values())


def test_how_far_the_walks_went(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Steps, the longest walk and the states are told; many walks see all states of a small space, and no other."""
    path = spec(LOST)
    run = one_run(qmodel("simulate", path, "--variant", "early", "--walks", "200", "--json").out)
    searched = check_file(path, "early")
    assert searched.states == run["states"]
    assert searched.depth <= run["depth"]
    assert run["depth"] < run["transitions"] <= 200 * run["depth"]
    assert "200 random walks (seed 0)" == run["why"]


def test_every_state_that_is_seen_is_reachable(spec: Callable[[str], Path]) -> None:
    """Walks stay within what the search reaches."""
    program = program_of(spec(LOST), "late", cpus=3)
    simulator = Simulator(program, Walks(50, 1000, 3), Options())
    simulator.run()
    reached = {state for layer in Explorer(program, Options()).run().layers for state in layer}
    assert simulator.seen <= reached
    assert 100 < len(simulator.seen)


def test_trace_replays(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """The trace of a violation is a run of the model: its moves, taken again, violate the property."""
    path = spec(LOST)
    run = one_run(qmodel("simulate", path, "--variant", "late", "--cpus", "3", "--walks", "100", "--json").out)
    (trace,) = (prop["trace"] for prop in run["properties"] if prop["verdict"] == "refuted")
    writer = TraceWriter(Interpreter(program_of(path, "late", cpus=3)))
    tids = {(t.name, t.cpu): number for number, t in enumerate(writer.threads())}
    moves = {step["step"]: (tids[step["thread"], step["cpu"]], step["alternative"]) for step in trace["steps"]}
    again = writer.replay([moves[number] for number in range(trace["length"])], Target(property="left"))
    assert trace["story"] == list(again.story)


def test_trace_is_shorter_than_the_walk(spec: Callable[[str], Path]) -> None:
    """A way is shortened by what other walks saw, whichever of them found the violation."""
    path = spec(DETOUR)
    shortest = len(trace_of(check_file(path), "done").steps)
    for seed in range(8):
        outcome = simulate.run(program_of(path), Walks(20, 100, seed), Options())
        assert shortest == len(trace_of(outcome, "done").steps)


def test_circle_of_waits_beside_a_thread_that_goes_on(spec: Callable[[str], Path]) -> None:
    """A deadlock is found though another thread spins to the end of the walk, and its trace ends where it closes."""
    program = program_of(spec(CIRCLE), "spin")
    writer = TraceWriter(Interpreter(program))
    for seed in range(8):
        outcome = simulate.run(program, Walks(10, 50, seed), Options())
        moves = [(step.thread, step.alternative) for step in trace_of(outcome, "deadlock").steps]
        with pytest.raises(ReplayError):
            writer.replay(moves[:-1], Target(property="deadlock"))


def test_circle_of_waits_beside_an_error(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A deadlock is found though every walk ends in another thread's error."""
    path = spec(CIRCLE)
    run = one_run(qmodel("simulate", path, "--variant", "race", "--json").out)
    found = {name for name, verdict in verdicts(run).items() if verdict == "refuted"}
    assert {"race", "deadlock"} == found == refuted(check_file(path, "race"))


def test_error_in_one_answer(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """Where one answer of the environment ends in an error, that is found, and the walk goes on with the other."""
    run = one_run(qmodel("simulate", spec(CHOICE), "--walks", "20", "--json").out)
    assert "refuted" == verdicts(run)["check"]
    assert 3 == run["depth"]


def test_steps_limit_a_walk(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """No walk is longer than it may be, and it is told how many were cut."""
    run = one_run(qmodel("simulate", spec(LOST), "--variant", "early", "--walks", "7", "--steps", "5", "--json").out)
    assert (35, 5) == (run["transitions"], run["depth"])
    assert "7 random walks (seed 0, 7 cut at 5 steps)" == run["why"]


def test_limit_of_states(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A limit ends the walks, and is named."""
    run = one_run(qmodel("simulate", spec(LOST), "--variant", "early", "--max-states", "30", "--json").out)
    assert "the limit of 30 states is reached" in run["why"]
    assert 30 <= run["states"] < 157


def test_stop_first(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """--stop-first ends with the walk that finds the first violation."""
    path = spec(LOST)
    words = ("simulate", path, "--variant", "late", "--json")
    first, all_ = one_run(qmodel(*words, "--stop-first").out), one_run(qmodel(*words).out)
    assert "refuted" == first["verdict"] == all_["verdict"]
    assert first["transitions"] < all_["transitions"]
    assert "stopped at the first violation" in first["why"]


def test_measures_are_lower_bounds(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """The greatest value that was seen is `at least`."""
    done = qmodel("simulate", spec(LOST), "--variant", "early", "--cpus", "3")
    assert "lost/early: backlog is at least 3" in done.out.splitlines()


def test_full_store_buffer_is_no_violation(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """A walk that ends because a store buffer has no more room has found nothing."""
    text = (
        "from qmodel.lang import Int, Model, thread\n\n\nclass Full(Model):\n    n = Int(0, high=9)\n\n"
        "    @thread\n    def task(m):\n        for i in range(20):\n            m.n = i % 9\n"
    )
    run = one_run(qmodel("simulate", spec(text), "--memory", "tso", "--walks", "50", "--json").out)
    assert "inconclusive" == run["verdict"]
    assert "a store buffer was too short" in run["why"]
    assert "buffer-bound" not in verdicts(run)


def test_same_seed_same_output(spec: Callable[[str], Path]) -> None:
    """The same seed gives the same report, whatever PYTHONHASHSEED."""
    path = spec(LOST)
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "qmodel", "simulate", path, "--cpus", "3", "--walks", "20", "--seed", "5", "--json"],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=False,
            capture_output=True,
            text=True,
        )
        report = json.loads(done.stdout)
        for run in report["runs"]:
            del run["seconds"]
        outputs.append(report)
    assert outputs[0] == outputs[1]


def test_another_seed_walks_elsewhere(spec: Callable[[str], Path]) -> None:
    """Another seed gives other walks."""
    program = program_of(spec(LOST), "early", cpus=3)
    found = []
    for seed in (1, 2):
        simulator = Simulator(program, Walks(20, 100, seed), Options())
        simulator.run()
        found.append(simulator.seen)
    assert found[0] != found[1]


@pytest.mark.parametrize("words", [("--walks", "0"), ("--steps", "-1"), ("--seed", "x"), ("--cpu", "2")])
def test_wrong_usage(qmodel: Command, spec: Callable[[str], Path], words: tuple[str, str]) -> None:
    """What cannot be meant is wrong usage, and the option is named."""
    done = qmodel("simulate", spec(LOST), *words)
    assert (2, "") == (done.code, done.out)
    assert words[0] in done.err


def test_report_fits_a_terminal(qmodel: Command, spec: Callable[[str], Path]) -> None:
    """At 80 columns no line of the report is cut by the terminal."""
    done = qmodel("simulate", spec(LOST), "--walks", "50")
    assert [] == [line for line in done.out.splitlines() if len(line) > 80]
