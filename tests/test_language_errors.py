"""What the language finds in every model without a line from its author: locks, races, bounds, the life of packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support import refuted, story, trace_of

if TYPE_CHECKING:
    from qmodel.result import Event, Outcome

Check = Callable[..., "Outcome"]

HEAD = """\
from qmodel.lang import (
    READ_ONCE, WRITE_ONCE, Array, Bool, Int, Model, Packets, Param, SkbList, SkbQueue, SpinLock, __skb_dequeue,
    __skb_queue_head, __skb_queue_tail, atomic_inc, check, choose, data_race, kfree_skb, raise_softirq, skb_peek,
    skb_queue_splice_tail_init, softirq, spin_lock, spin_trylock, spin_unlock, thread, transmit, wait_until,
)


class Small(Model):
"""


def end_of(outcome: Outcome, name: str) -> Event:
    """Return the access that violates a property: its trace's last event."""
    return trace_of(outcome, name).events[-1]


# --- locks --------------------------------------------------------------------------------------------------------


LOCKED = """
    lock = SpinLock()

    @thread
    def task(m):
        spin_lock(m.lock)
        {statement}
        spin_unlock(m.lock)
"""


def test_taking_a_lock_twice_is_a_deadlock(check_source: Check) -> None:
    """A thread that takes the lock which it has waits for itself."""
    outcome = check_source(HEAD + LOCKED.format(statement="spin_lock(m.lock)"))
    assert {"deadlock"} == refuted(outcome)
    assert 2 == len(trace_of(outcome, "deadlock").steps)
    assert "taken by the thread that holds it" in story(outcome, "deadlock")


def test_trying_a_lock_twice_is_none(check_source: Check) -> None:
    """spin_trylock() of one's own lock fails, and nothing is wrong with it."""
    statement = 'check(not spin_trylock(m.lock), "it is taken")'
    assert set() == refuted(check_source(HEAD + LOCKED.format(statement=statement)))


def test_releasing_the_lock_of_another(check_source: Check) -> None:
    """The trace ends in the unlock, and the story says who has the lock."""
    outcome = check_source(
        HEAD
        + """
    lock = SpinLock()
    taken = Bool()

    @thread
    def owner(m):
        spin_lock(m.lock)
        WRITE_ONCE(m.taken, True)
        spin_unlock(m.lock)

    @thread
    def thief(m):
        wait_until(m.taken)
        spin_unlock(m.lock)
"""
    )
    assert {"locking"} == refuted(outcome)
    assert (1, "spin_unlock(m.lock)") == (end_of(outcome, "locking").thread, end_of(outcome, "locking").source)
    assert "(now: CPU0 (owner))" in story(outcome, "locking")


def test_releasing_a_free_lock(check_source: Check) -> None:
    """A lock that nobody has cannot be released either."""
    outcome = check_source(
        HEAD
        + """
    lock = SpinLock()

    @thread
    def task(m):
        spin_unlock(m.lock)
"""
    )
    assert {"locking"} == refuted(outcome)


def test_task_that_ends_with_a_lock(check_source: Check) -> None:
    """One way through the task forgets the unlock."""
    outcome = check_source(
        HEAD
        + """
    lock = SpinLock()

    @thread
    def task(m):
        spin_lock(m.lock)
        if choose():
            spin_unlock(m.lock)
"""
    )
    assert {"locking"} == refuted(outcome)


def test_deadlock_of_some_threads(check_source: Check) -> None:
    """Two threads that wait for each other are a deadlock, though a third one goes on for ever."""
    outcome = check_source(
        HEAD
        + """
    a = SpinLock()
    b = SpinLock()
    x = Int(0, high=1)

    @thread
    def busy(m):
        while True:
            WRITE_ONCE(m.x, 1 - READ_ONCE(m.x))

    @thread
    def forth(m):
        spin_lock(m.a)
        spin_lock(m.b)
        spin_unlock(m.b)
        spin_unlock(m.a)

    @thread
    def back(m):
        spin_lock(m.b)
        spin_lock(m.a)
        spin_unlock(m.a)
        spin_unlock(m.b)
"""
    )
    assert {"deadlock"} == refuted(outcome)
    assert [1, 2] == [step.thread for step in trace_of(outcome, "deadlock").steps]
    assert "CPU1 (forth) waits for b, which CPU2 (back) has" in story(outcome, "deadlock")


# --- races --------------------------------------------------------------------------------------------------------

WRITER = """
    lock = SpinLock()
    x = Int(0, high=1, guarded_by=lock)

    @thread
    def writer(m):
        spin_lock(m.lock)
        m.x = 1
        spin_unlock(m.lock)

    @thread
    def reader(m):
        check({read} < 2, "it is 0 or 1")
"""


def test_race_names_both_accesses(check_source: Check) -> None:
    """The story says what is touched without which lock, and where the other access stands."""
    outcome = check_source(HEAD + WRITER.format(read="m.x"))
    assert {"race"} == refuted(outcome)
    assert "reader" == end_of(outcome, "race").function
    told = story(outcome, "race")
    assert "x is touched without lock" in told
    line = (HEAD + WRITER).splitlines().index("        m.x = 1") + 1
    assert "CPU0 (writer)" in told
    assert f"spec.py:{line}" in told


@pytest.mark.parametrize("word", ["READ_ONCE", "data_race"])
def test_marked_access_is_no_race(word: str, check_source: Check) -> None:
    """An access that says that it is meant needs no lock."""
    assert set() == refuted(check_source(HEAD + WRITER.format(read=f"{word}(m.x)")))


def test_another_lock_does_not_help(check_source: Check) -> None:
    """A variable is guarded by one lock, and a race under any other."""
    outcome = check_source(
        HEAD
        + """
    lock = SpinLock()
    other = SpinLock()
    x = Int(0, high=1, guarded_by=lock)

    @thread
    def right(m):
        spin_lock(m.lock)
        m.x = 1
        spin_unlock(m.lock)

    @thread
    def wrong(m):
        spin_lock(m.other)
        m.x = 0
        spin_unlock(m.other)
"""
    )
    assert {"race"} == refuted(outcome)
    assert "wrong" == end_of(outcome, "race").function


@pytest.mark.parametrize(("index", "expected"), [("cpu", set()), ("1 - cpu", {"race"})])
def test_array_of_locks_guards_element_by_element(index: str, expected: set[str], check_source: Check) -> None:
    """The lock of one element does not guard another."""
    outcome = check_source(
        HEAD
        + f"""
    locks = Array(SpinLock(), size=2)
    xs = Array(Int(0, high=1), size=2, guarded_by=locks)

    @thread(each=2)
    def task(m, cpu):
        spin_lock(m.locks[cpu])
        m.xs[{index}] = 1
        spin_unlock(m.locks[cpu])
"""
    )
    assert expected == refuted(outcome)


# --- bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "steps", "told"), [("atomic_inc(m.x)", 3, "becomes 3"), ("m.x -= 1", 2, "becomes -1")]
)
def test_value_outside_its_bounds(statement: str, steps: int, told: str, check_source: Check) -> None:
    """A value that leaves its bounds is an error of the line that stores it, never a wrap."""
    outcome = check_source(
        HEAD
        + f"""
    x = Int(0, high=2)

    @thread(each=3)
    def count(m, cpu):
        {statement}
"""
    )
    assert {"domain"} == refuted(outcome)
    assert steps == len(trace_of(outcome, "domain").steps)
    assert statement == end_of(outcome, "domain").source
    assert f"{told}, outside 0 to 2" in story(outcome, "domain")


def test_index_outside_its_array(check_source: Check) -> None:
    """An index that is known at run time only is judged there."""
    outcome = check_source(
        HEAD
        + """
    i = Int(0, high=2)
    slots = Array(Bool(), size=2)

    @thread(each=2)
    def task(m, cpu):
        atomic_inc(m.i)
        m.slots[m.i] = True
"""
    )
    assert {"domain"} == refuted(outcome)
    assert "index 2 is outside an array of 2" in story(outcome, "domain").lower()


# --- packets ------------------------------------------------------------------------------------------------------

ONE = """
    packets = Packets(1, each=1)
    q = SkbList()
    p = SkbList()

    @thread
    def task(m):
        for skb in m.flow(0):
            __skb_queue_tail(m.q, skb)
        skb = __skb_dequeue(m.q)
        check(skb_peek(m.p) is None, "p is empty")
"""
"""The thread has a0 in its hands after this."""


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        ("__skb_queue_tail(m.q, skb); __skb_queue_tail(m.q, skb)", "is queued"),
        ("__skb_queue_tail(m.q, skb); __skb_queue_head(m.p, skb)", "is queued"),
        ("transmit(skb); transmit(skb)", "is sent"),
        ("transmit(skb); __skb_queue_tail(m.q, skb)", "is queued"),
        ("transmit(skb); kfree_skb(skb)", "is freed"),
        ("kfree_skb(skb); kfree_skb(skb)", "is freed"),
        ("kfree_skb(skb); transmit(skb)", "is sent"),
        ("kfree_skb(skb); check(skb.index == 0, '')", "is used"),
        ("transmit(skb); check(skb.flow == 0, '')", "is used"),
    ],
)
def test_packet_is_given_away_once(statements: str, told: str, check_source: Check) -> None:
    """Whoever has queued, sent or freed a packet has it no more: the second use is refuted, and named."""
    outcome = check_source(f"{HEAD}{ONE}        {statements}\n")
    assert {"once"} == refuted(outcome)
    assert f"a0 {told}" in story(outcome, "once")
    assert end_of(outcome, "once").source.endswith(statements)


@pytest.mark.parametrize("statement", ["__skb_queue_tail(m.p, skb)", "transmit(skb)", "kfree_skb(skb)"])
def test_packet_that_is_given_away_once_is_well(statement: str, check_source: Check) -> None:
    """The same with one use: nothing is refuted."""
    assert set() == refuted(check_source(f"{HEAD}{ONE}        {statement}\n"))


def test_packet_of_another(check_source: Check) -> None:
    """A packet that was only looked at in a list is not in the hands of who looked."""
    outcome = check_source(
        HEAD
        + """
    packets = Packets(1, each=1)
    q = SkbList()

    @thread
    def task(m):
        for skb in m.flow(0):
            __skb_queue_tail(m.q, skb)

    @thread
    def other(m):
        skb = skb_peek(m.q)
        if skb is not None:
            transmit(skb)
"""
    )
    assert {"once"} == refuted(outcome)
    assert [0, 1, 1] == [step.thread for step in trace_of(outcome, "once").steps]


@pytest.mark.parametrize(
    ("statements", "line"),
    [
        ("pass", "skb = __skb_dequeue(m.q)"),
        ("skb = None", "skb = __skb_dequeue(m.q)"),
        ("q = SkbQueue(); __skb_queue_tail(q, skb)", "q = SkbQueue(); __skb_queue_tail(q, skb)"),
        ("if choose(): transmit(skb)", "if choose(): transmit(skb)"),
    ],
)
def test_packet_that_nobody_holds_any_more_is_lost(statements: str, line: str, check_source: Check) -> None:
    """A packet is lost where the last local that has it is used for the last time, and is not given away there."""
    outcome = check_source(f"{HEAD}{ONE}        {statements}\n")
    assert {"no-leak"} == refuted(outcome)
    assert "a0 is lost" in story(outcome, "no-leak")
    assert line == end_of(outcome, "no-leak").source


def test_list_that_is_stored_over_loses_its_packets(check_source: Check) -> None:
    """What a list held and does not hold after a store to it is lost."""
    outcome = check_source(f"{HEAD}{ONE}        __skb_queue_tail(m.p, skb)\n        m.p = SkbQueue()\n")
    assert {"no-leak"} == refuted(outcome)
    assert "m.p = SkbQueue()" == end_of(outcome, "no-leak").source


@pytest.mark.parametrize(
    "statement",
    [
        "transmit(skb)",
        "kfree_skb(skb)",
        "__skb_queue_tail(m.p, skb)",
        "__skb_queue_head(m.p, skb)",
        "check(skb.index == 0, '')",
    ],
)
def test_empty_list_gives_null(statement: str, check_source: Check) -> None:
    """What comes out of an empty list is NULL, and must not be used."""
    outcome = check_source(f"{HEAD}{ONE}        transmit(skb)\n        skb = __skb_dequeue(m.q)\n        {statement}\n")
    assert {"null"} == refuted(outcome)
    assert statement == end_of(outcome, "null").source


def test_packets_out_of_order(check_source: Check) -> None:
    """The story says which list has a packet behind a later one of its flow, and the trace goes on to the wire."""
    outcome = check_source(
        HEAD
        + """
    packets = Packets(2, each=1)
    q = SkbList()

    @thread
    def task(m):
        for skb in m.flow(0):
            __skb_queue_head(m.q, skb)
        transmit(__skb_dequeue(m.q))
        transmit(__skb_dequeue(m.q))
"""
    )
    assert {"order"} == refuted(outcome)
    assert "leaves q as [a1 a0]" in story(outcome, "order")
    assert "transmit(a0)" == end_of(outcome, "order").text
