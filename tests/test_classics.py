"""Concurrent programs whose verdicts are known: what is refuted, what holds, and what a trace tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qmodel.result import Strength, Verdict
from tests.support import CLASSICS, check_file, classic, maximum, refuted, story, trace_of, variants_of

if TYPE_CHECKING:
    from qmodel.frontend.declarations import Expectation, Variant
    from qmodel.result import Outcome

FILES = sorted(path.stem for path in CLASSICS.glob("[a-z]*.py"))


def stated(path: Path) -> list[tuple[Variant, Expectation, str]]:
    """Return every expectation of a file, once for each memory model."""
    return [(v, e, memory) for v in variants_of(path) for e in v.expectations for memory in e.memories]


def moves(outcome: Outcome, name: str) -> list[tuple[int, str]]:
    """Return a trace that refutes a property as the thread and the text of each access."""
    return [(event.thread, event.text) for event in trace_of(outcome, name).events]


@pytest.mark.parametrize("name", FILES)
def test_just_what_is_expected_is_refuted(name: str) -> None:
    """Each variant, in each configuration that its expectations name, has the verdicts that they state."""
    expected, actual = {}, {}
    for variant, expectation, memory in stated(classic(name)):
        key = (variant.name, expectation.scenario, memory, str(expectation.params))
        outcome = check_file(classic(name), variant.name, expectation.scenario, memory, **expectation.params)
        expected[key] = set(expectation.refuted)
        actual[key] = refuted(outcome)
        if not expectation.refuted:
            assert (Verdict.HOLDS, Strength.EXHAUSTIVE, True) == (outcome.verdict, outcome.strength, outcome.complete)
    assert expected == actual


@pytest.mark.parametrize("name", FILES)
def test_every_variant_states_what_comes_of_it(name: str) -> None:
    """There is no variant without an expectation, and one in each file that holds."""
    variants = variants_of(classic(name))
    assert [] == [variant.name for variant in variants if not variant.expectations]
    assert any(not expectation.refuted for variant in variants for expectation in variant.expectations)


# --- what traces tell ---------------------------------------------------------------------------------------------


def test_peterson_without_turn_waits_in_both_threads() -> None:
    """Two stores and the deadlock is there: each wants to enter and waits for the other's wish to end."""
    outcome = check_file(classic("peterson"), "no-turn", rounds=1)
    stores = [(0, "WRITE_ONCE(wants[0], true)"), (1, "WRITE_ONCE(wants[1], true)")]
    waits = [(me, "wait_until(not m.wants[1 - me])") for me in range(2)]
    assert [*stores, *waits] == moves(outcome, "deadlock")


def test_peterson_test_first() -> None:
    """Both look, then both store: neither has seen the other's wish."""
    trace = trace_of(check_file(classic("peterson"), "test-first", rounds=1), "mutex")
    assert [0, 1, 1, 0] == [step.thread for step in trace.steps]
    assert ["WRITE_ONCE(wants[1], true)", "WRITE_ONCE(wants[0], true)"] == [e.text for e in trace.events[2:]]


def test_peterson_turn_first() -> None:
    """CPU1 enters between CPU0's two stores, and `turn` says then that it is CPU0's."""
    expected = [
        (0, "WRITE_ONCE(turn, 1)"),
        (1, "WRITE_ONCE(turn, 0)"),
        (1, "WRITE_ONCE(wants[1], true)"),
        (1, "READ_ONCE(wants[0]) = false"),
        (0, "WRITE_ONCE(wants[0], true)"),
        (0, "READ_ONCE(wants[1]) = true"),
        (0, "READ_ONCE(turn) = 0"),
    ]
    assert expected == moves(check_file(classic("peterson"), "turn-first", rounds=1), "mutex")


def test_peterson_on_x86_needs_no_commit_to_fail() -> None:
    """Both threads enter while all their stores are still in their buffers."""
    trace = trace_of(check_file(classic("peterson"), "spin", memory="tso", rounds=1), "mutex")
    assert (6, 1) == (len(trace.steps), trace.switches)
    assert [] == [change for event in trace.events for change in event.changes]


def test_ticket_that_two_threads_draw() -> None:
    """Two threads read the same ticket before either stores the next one, and neither waits for the other."""
    outcome = check_file(classic("ticket"), "load-store", rounds=1)
    drawn = [text for _, text in moves(outcome, "mutex") if text.startswith("READ_ONCE(next_ticket)")]
    assert ["READ_ONCE(next_ticket) = 0"] * 2 == drawn
    assert 6 == len(trace_of(outcome, "mutex").steps)


def test_aba() -> None:
    """One thread goes to sleep before its cmpxchg; the other pops twice and pushes once; the cmpxchg succeeds."""
    trace = trace_of(check_file(classic("treiber"), "plain", "ab"), "owned")
    assert [0] * 2 + [1] * 9 + [0] == [step.thread for step in trace.steps]
    tops = [change.after for event in trace.events for change in event.changes if change.name == "top"]
    assert ["2", "0", "1", "2"] == tops


def test_empty_treiber_stack() -> None:
    """In the default scenario the stack is empty, and there is nothing to confuse."""
    assert set() == refuted(check_file(classic("treiber"), "plain"))


def test_overflow_of_a_buffer_names_its_line() -> None:
    """A producer that does not look again counts beyond the buffer; the trace ends in the line that does."""
    outcome = check_file(classic("buffer"), "look-once")
    last = trace_of(outcome, "domain").events[-1]
    assert ("producer", "m.count += 1") == (last.function, last.source)
    assert "becomes 2, outside 0 to 1" in story(outcome, "domain")


def test_if_needs_a_third_thread_between() -> None:
    """Where the first look is under the lock, a wait and a lock must let another producer come between."""
    trace = trace_of(check_file(classic("buffer"), "if", puts=2), "domain")
    waiter = trace.steps[-1].thread
    waits = next(
        n
        for n, step in enumerate(trace.steps)
        if step.events[0].text.startswith("wait_until") and step.thread == waiter
    )
    assert {0, 1} - {waiter} <= {step.thread for step in trace.steps[waits:]}


@pytest.mark.parametrize(("size", "fullest"), [(1, 1), (2, 2), (3, 2)])
def test_fill_of_a_buffer(size: int, fullest: int) -> None:
    """Two items are put: a buffer gets as full as it can with them."""
    assert fullest == maximum(check_file(classic("buffer"), "look-again", size=size), "fill")


@pytest.mark.parametrize("readers", [0, 1, 2, 3])
def test_readers_read_at_once(readers: int) -> None:
    """All readers can be in at the same time."""
    assert readers == maximum(check_file(classic("readers_writers"), "wait-under-lock", readers=readers), "at once")


def test_reader_comes_in_after_the_writer_has_looked() -> None:
    """The writer finds nobody, a reader comes in, and the writer takes the lock."""
    trace = trace_of(check_file(classic("readers_writers"), "wait-before-lock"), "exclusive")
    assert [2, 0, 0, 0, 2] == [step.thread for step in trace.steps]


@pytest.mark.parametrize(("seats", "eating"), [(2, 1), (3, 1), (4, 2), (5, 2)])
def test_philosophers_that_eat_at_once(seats: int, eating: int) -> None:
    """Every second philosopher of a circle can eat, and no more."""
    assert eating == maximum(check_file(classic("philosophers"), "ordered", seats=seats), "eating")


def test_philosophers_deadlock_names_its_circle() -> None:
    """Each takes one fork: the story says of each what it waits for, and who has that."""
    outcome = check_file(classic("philosophers"), "left-first")
    assert [0, 1, 2] == [step.thread for step in trace_of(outcome, "deadlock").steps]
    for philosopher, right in ((0, 1), (1, 2), (2, 0)):
        waits = f"CPU{philosopher} (philosopher) waits for forks[{right}], which CPU{right} (philosopher) has"
        assert waits in story(outcome, "deadlock")


def test_abba_deadlock_names_its_circle() -> None:
    """Each has one lock and waits for the other; where they wait is told at the end of the trace."""
    outcome = check_file(classic("abba"), "abba")
    assert "CPU0 (a_to_b) waits for b_lock, which CPU1 (b_to_a) has" in story(outcome, "deadlock")
    assert "CPU1 (b_to_a) waits for a_lock, which CPU0 (a_to_b) has" in story(outcome, "deadlock")
    expected = [
        (0, "lock", "spin_lock(&a_lock)"),
        (1, "lock", "spin_lock(&b_lock)"),
        (0, "wait", "spin_lock(&b_lock)"),
        (1, "wait", "spin_lock(&a_lock)"),
    ]
    assert expected == [(e.thread, e.kind, e.text) for e in trace_of(outcome, "deadlock").events]


def test_softirq_waits_for_the_task_below_it() -> None:
    """The circle leads through the CPU: the task cannot go on before the softirq ends, which waits for its lock."""
    outcome = check_file(classic("softirq_lock"), "spin-lock")
    assert "CPU0 (timer) waits for lock, which CPU0 (task) has" in story(outcome, "deadlock")
    assert [0, 0, 1] == [step.thread for step in trace_of(outcome, "deadlock").steps]


def test_softirq_that_comes_too_early_comes_after_enable() -> None:
    """With bottom halves off the softirq does not come; it comes in the step after they are on again."""
    trace = trace_of(check_file(classic("softirq_lock"), "enable-too-early"), "deadlock")
    texts = [event.text for event in trace.events]
    assert texts.index("local_bh_enable()") < texts.index("<softirq timer>")
