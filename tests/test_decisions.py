"""Decisions about what a specification means, each on the smallest one that shows it: see docs/decisions/."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from qmodel import lang
from qmodel.cli.expectations import as_expected, exit_code, expected, is_exact
from qmodel.cli.running import Configuration
from qmodel.cli.running import run as run_configuration
from qmodel.engines.options import Options
from qmodel.engines.python.engine import run
from qmodel.frontend.configure import configure
from qmodel.frontend.declarations import load
from qmodel.frontend.diagnostics import SpecError
from qmodel.passes import lower
from qmodel.result import Verdict
from tests.support import maximum, refuted, story, trace_of

if TYPE_CHECKING:
    from qmodel.frontend.declarations import ParamValue, Spec, Variant
    from qmodel.ir.program import Program
    from qmodel.result import Outcome, Run

WORDS = f"from qmodel.lang import {', '.join(lang.__all__)}\n\n\n"
PACKETS = "packets = Packets(1, each=1)\n"


class Small:
    """A specification of one model, from the body of its class; above: what stands before it."""

    def __init__(self, folder: Path, *body: str, above: str = "") -> None:
        self.path = folder / "spec.py"
        text = "\n".join(dedent(part) for part in body)
        self.path.write_text(f"{WORDS}{above}\n\nclass Small(Model):\n{indent(text, '    ')}", encoding="utf-8")

    @property
    def spec(self) -> Spec:
        """The model."""
        (spec,) = load(self.path)
        return spec

    @property
    def variant(self) -> Variant:
        """Its only variant."""
        (variant,) = self.spec.variants
        return variant

    def program(self, memory: str = "sc", **params: int) -> Program:
        """Return it as an engine runs it."""
        return lower(configure(self.variant, "default", params), memory)

    def search(self, memory: str = "sc", **params: int) -> Outcome:
        """Search all of it."""
        return run(self.program(memory, **params), Options())

    def check(self, memory: str = "sc", **params: int) -> Run:
        """Search it as `qmodel check` does."""
        configuration = Configuration(self.spec, self.variant, "default", memory, dict(params))
        return run_configuration(configuration, "python", Options())


def verdict(outcome: Outcome, name: str) -> Verdict:
    """Return the verdict on a property."""
    (found,) = (p.verdict for p in outcome.properties if p.name == name)
    return found


def texts(outcome: Outcome, name: str) -> list[str]:
    """Return the accesses of the trace to the greatest value of a measure."""
    (trace,) = (m.trace for m in outcome.measures if m.name == name)
    assert trace is not None
    return [event.text for event in trace.events]


# --- 0001: what a step is -------------------------------------------------------------------------------------------

STEPS = {
    "n = 1; k = n + 1": 0,
    "smp_mb(); barrier(); cpu_relax()": 0,
    "m.x = 1": 1,
    "m.x += 1": 2,
    "atomic_inc(m.x)": 1,
    "m.x = m.y": 2,
    "n = m.x and m.y": 1,
    "n = m.x or m.y": 2,
    "spin_lock(m.a); spin_unlock(m.a)": 2,
    "spin_lock_bh(m.a); spin_unlock_bh(m.a)": 3,
    "rcu_read_lock(); rcu_read_unlock()": 1,
    "synchronize_rcu()": 2,
    "set_bit(State.ONLY, m.word)": 1,
    "__set_bit(State.ONLY, m.word)": 2,
    "skb_queue_splice_init(m.p, m.q)": 2,
    "q = SkbQueue(); skb_queue_splice_init(m.p, q)": 1,
    "with atomic(): m.x += 1": 1,
}


EVERYTHING = """
    packets = Packets(0, each=1)
    x = Int(0, high=9)
    y = Int(0, high=9)
    word = Flags(State)
    a = SpinLock()
    p = SkbList()
    q = SkbList()

    @thread
    def task(m):
        {}

    @thread
    def other(m):
        for skb in m.flow(0):
            m.x = m.y
            set_bit(State.ONLY, m.word)
            spin_lock(m.a)
            __skb_queue_tail(m.p, skb)
            skb_queue_splice_init(m.p, m.q)
            spin_unlock(m.a)
"""
"""Declares all that a statement may use; the second thread has no packets, and so does nothing."""


@pytest.mark.parametrize(("statement", "steps"), STEPS.items(), ids=STEPS)
def test_one_access_is_one_step(tmp_path: Path, statement: str, steps: int) -> None:
    """Each access to shared memory is one step; local work, and what only closes something, is none of its own."""
    outcome = Small(tmp_path, EVERYTHING.format(statement), above="class State(Bits):\n    ONLY = 0\n").search()
    assert (steps, Verdict.HOLDS) == (outcome.depth, outcome.verdict)


def test_what_comes_before_the_first_access_is_done_at_the_start(tmp_path: Path) -> None:
    """A thread that touches no shared memory is at its end in the initial state."""
    body = """
        x = Int(0, high=1)

        @thread
        def task(m):
            for skb in m.flow(0):
                kfree_skb(skb)

        @measure("x")
        def x_is(m):
            return m.x

        @quiescent("end")
        def end(m):
            return m.x == 0
    """
    outcome = Small(tmp_path, PACKETS, body).search()
    assert (1, 0) == (outcome.states, outcome.depth)


def test_accesses_are_made_in_the_order_of_the_text(tmp_path: Path) -> None:
    """A statement first looks where it stores to, then reads from left to right, then stores."""
    body = """
        a = Array(Int(0, high=2), size=2)
        i = Int(1, high=1)
        x = Int(0, high=1)
        y = Int(1, high=1)

        @thread
        def task(m):
            m.a[m.i] = m.x + m.y
            m.a[0] += READ_ONCE(m.y)

        @measure("a")
        def a_is(m):
            return m.a[0]
    """
    wanted = [
        "i == 1", "x == 0", "y == 1", "a[1] = 1", "a[0] == 0", "READ_ONCE(y) = 1", "a[0] = 1",
    ]  # fmt: skip
    assert wanted == texts(Small(tmp_path, body).search(), "a")


# --- 0002: choose() -------------------------------------------------------------------------------------------------

CHOICES = {
    "at the start": ("if choose(): m.x = 1", 2),
    "behind an access": ("m.y = 1\n    if choose(): m.x = 1", 2),
    "in a loop with an access": ("m.y = 1\n    while choose(): m.x = 1", 2),
    "in a loop without one": ("m.y = 1\n    while choose(): pass", 2),
    "once, in a row": ("m.y = 1\n    choose(); choose()", 1),
}


@pytest.mark.parametrize("where", CHOICES)
def test_choose_belongs_to_the_step_before_it(tmp_path: Path, where: str) -> None:
    """choose() is a step of its own at the start of a thread and in a loop without an access, and nowhere else."""
    statements, depth = CHOICES[where]
    body = f"""
x = Int(0, high=1)
y = Int(0, high=1)

@thread
def task(m):
    {statements}

@quiescent("never")
def never(m):
    return m.x + m.y >= 0
"""
    outcome = Small(tmp_path, body).search()
    assert (depth, Verdict.HOLDS) == (outcome.depth, outcome.verdict)


# --- 0003: guarded_by and data races --------------------------------------------------------------------------------


def test_an_invariant_is_judged_where_the_locks_of_what_it_reads_are_free(tmp_path: Path) -> None:
    """Between two stores under the lock an invariant may be broken; one that reads unguarded memory may not."""
    body = """
        a = SpinLock()
        x = Int(0, high=1, guarded_by=a)
        y = Int(0, high=1, guarded_by=a)
        v = Int(0, high=1)
        w = Int(0, high=1)

        @thread
        def task(m):
            spin_lock(m.a)
            m.x = 1
            m.v = 1
            m.y = 1
            m.w = 1
            spin_unlock(m.a)

        @invariant("guarded")
        def guarded(m):
            return m.x == m.y

        @invariant("unguarded")
        def unguarded(m):
            return m.v == m.w
    """
    assert {"unguarded"} == refuted(Small(tmp_path, body).search())


# --- 0004: the life of a packet -------------------------------------------------------------------------------------

SENDER = """
    slot = SkbPtr()
    queue = SkbList()

    @thread
    def task(m):
        skb_queue_empty(m.queue)
        for skb in m.flow(0):
            {}

    @quiescent("empty")
    def empty(m):
        return m.slot is None and skb_queue_empty(m.queue)
"""
LIVES = {
    "transmit(skb)": (set(), Verdict.HOLDS),
    "kfree_skb(skb)": (set(), Verdict.HOLDS),
    "__skb_queue_tail(m.queue, skb)": ({"empty"}, Verdict.REFUTED),
    "pass": ({"no-leak"}, Verdict.HOLDS),
    "transmit(skb); transmit(skb)": ({"once"}, Verdict.INCONCLUSIVE),
    "__skb_queue_tail(m.queue, skb); transmit(skb)": ({"once"}, Verdict.INCONCLUSIVE),
    "kfree_skb(skb); check(skb.flow == 0, '')": ({"once"}, Verdict.INCONCLUSIVE),
    "kfree_skb(skb); transmit(__skb_dequeue(m.queue))": ({"null"}, Verdict.INCONCLUSIVE),
    "m.slot = skb": ({"empty"}, Verdict.REFUTED),
    "m.slot = skb; m.slot = None; transmit(skb)": (set(), Verdict.HOLDS),
    "m.slot = skb; transmit(xchg(m.slot, None))": (set(), Verdict.HOLDS),
    "m.slot = skb; m.slot = None": ({"no-leak"}, Verdict.HOLDS),
    "m.slot = skb; transmit(m.slot)": ({"once"}, Verdict.INCONCLUSIVE),
}


@pytest.mark.parametrize(("statements", "found"), LIVES.items(), ids=LIVES)
def test_a_packet_is_in_one_place(tmp_path: Path, statements: str, found: tuple[set[str], Verdict]) -> None:
    """A packet is held, listed, on the wire or freed; a leak lets the search go on, any other error ends its path."""
    outcome = Small(tmp_path, PACKETS, SENDER.format(statements)).search()
    assert found == (refuted(outcome), verdict(outcome, "empty"))


# --- 0005: softirqs and bottom halves -------------------------------------------------------------------------------

SOFTIRQ = """
    x = Int(0, high=1)
    early = Bool()

    @thread
    def task(m):
        {}

    @thread
    def other(m):
        if m.early:
            m.x = 1

    @softirq
    def handler(m, cpu):
        if m.x == 0:
            m.early = True

    @measure("early")
    def came_early(m):
        return m.early
"""


@pytest.mark.parametrize(
    ("statements", "early"),
    [
        ("raise_softirq(m.handler); local_bh_disable(); m.x = 1; local_bh_enable()", 1),
        ("local_bh_disable(); raise_softirq(m.handler); m.x = 1; local_bh_enable()", 0),
    ],
)
def test_a_softirq_starts_where_bottom_halves_are_on(tmp_path: Path, statements: str, early: int) -> None:
    """local_bh_disable() is a step: a softirq that is raised may come before it, and not while they are off."""
    assert early == maximum(Small(tmp_path, SOFTIRQ.format(statements)).search(), "early")


def test_a_softirq_runs_on_the_cpus_that_raise_it(tmp_path: Path) -> None:
    """There is one handler for each CPU that can raise it, and a thread of the environment is on a CPU of its own."""
    body = """
        x = Int(0, high=3)

        @thread(each=2)
        def sender(m, cpu):
            m.x = cpu

        @thread
        def raiser(m):
            if m.x:
                raise_softirq(m.handler)

        @environment(budget=1)
        def driver(m):
            raise_softirq(m.handler)

        @softirq
        def handler(m, cpu):
            m.x = 0
    """
    wanted = {("sender", 0), ("sender", 1), ("raiser", 2), ("driver", 3), ("handler", 2), ("handler", 3)}
    assert wanted == {(t.name, t.cpu) for t in Small(tmp_path, body).search().threads}


# --- 0006: rest and quiescence --------------------------------------------------------------------------------------

AT_REST = """
    off = Bool({})

    @thread
    def task(m):
        m.off = True

    @environment(budget=1)
    def driver(m):
        m.off = False

    @quiescent("on")
    def on(m):
        return not m.off
"""


def test_the_environment_may_rest_for_ever(tmp_path: Path) -> None:
    """A run is over also where the environment could still act, and has not."""
    assert {"on"} == refuted(Small(tmp_path, AT_REST.format("")).search())


def test_a_run_is_not_over_while_a_variable_is_not_at_rest(tmp_path: Path) -> None:
    """With rest=False states in which the variable is true are not quiescent."""
    assert set() == refuted(Small(tmp_path, AT_REST.format("rest=False")).search())


@pytest.mark.parametrize("memory", ["sc", "tso", "weak"])
def test_a_run_is_not_over_while_a_store_is_pending(tmp_path: Path, memory: str) -> None:
    """Where a run is over everything that was stored is seen by all."""
    body = """
        x = Bool()

        @thread
        def task(m):
            WRITE_ONCE(m.x, True)

        @quiescent("seen")
        def seen(m):
            return m.x
    """
    assert set() == refuted(Small(tmp_path, body).search(memory))


# --- 0007: deadlock -------------------------------------------------------------------------------------------------


def test_waiting_for_ever_for_a_value_is_a_deadlock(tmp_path: Path) -> None:
    """Where nothing can move and a task has not ended, it is a deadlock; while the environment can act it is none."""
    body = """
        acts = Budget(0)
        x = Bool()

        @thread
        def task(m):
            wait_until(m.x)

        @environment(budget=acts)
        def driver(m):
            m.x = True
    """
    small = Small(tmp_path, body)
    assert ({"deadlock"}, set()) == (refuted(small.search(acts=0)), refuted(small.search(acts=1)))


def test_a_step_that_ends_in_an_error_is_no_deadlock(tmp_path: Path) -> None:
    """Where the only step left violates check(), check is refuted and deadlock is not decided."""
    body = """
        x = Bool()

        @thread
        def task(m):
            check(m.x, "x is set")
    """
    outcome = Small(tmp_path, body).search()
    assert ({"check"}, Verdict.INCONCLUSIVE) == (refuted(outcome), verdict(outcome, "deadlock"))


# --- 0008: traces ---------------------------------------------------------------------------------------------------


def test_a_commit_is_no_switch(tmp_path: Path) -> None:
    """Two stores and two loads on two CPUs, with both commits behind them, are one switch."""
    body = """
        x = Bool()
        y = Bool()
        p = Bool()
        q = Bool()

        @thread
        def left(m):
            WRITE_ONCE(m.x, True)
            m.p = not READ_ONCE(m.y)

        @thread
        def right(m):
            WRITE_ONCE(m.y, True)
            m.q = not READ_ONCE(m.x)

        @quiescent("one-sees")
        def one_sees(m):
            return not (m.p and m.q)
    """
    trace = trace_of(Small(tmp_path, body).search("tso"), "one-sees")
    assert (1, 4) == (trace.switches, sum(event.kind == "flush" for event in trace.events))


# --- 0009: expectations and exit codes ------------------------------------------------------------------------------

STATED = """
    rounds = Param(1, high=4, grows=True)
    start = Param(0, high=4)
    x = Int(0, high=8)

    @thread
    def task(m):
        m.x = m.start
        for _ in range(m.rounds):
            m.x += 1

    @invariant("small")
    def small(m):
        return m.x < 3

    expect = [{}]
"""


@pytest.mark.parametrize(
    ("stated", "params", "wanted"),
    [
        ('Refutes("small", rounds=3)', {"rounds": 3}, Verdict.REFUTED),
        ('Refutes("small", rounds=3)', {"rounds": 4}, Verdict.REFUTED),
        ('Refutes("small", rounds=3)', {"rounds": 2}, None),
        ("Holds(rounds=2)", {"rounds": 2}, Verdict.HOLDS),
        ("Holds(rounds=2)", {"rounds": 1}, Verdict.HOLDS),
        ("Holds(rounds=2)", {"rounds": 3}, None),
        ("Holds(rounds=2)", {"rounds": 1, "start": 1}, None),
        ("", {"rounds": 3}, Verdict.HOLDS),
    ],
)
def test_expectations_extend_by_parameters_that_grow(
    tmp_path: Path, stated: str, params: dict[str, int], wanted: Verdict | None
) -> None:
    """A refutation extends to greater values and a proof to smaller ones; a variant that states nothing must hold."""
    variant = Small(tmp_path, STATED.format(stated)).variant
    given: dict[str, ParamValue] = {"rounds": 1, "start": 0, **params}
    found = expected(variant, "default", "sc", given)
    assert wanted == (found.verdict if found else None)


@pytest.mark.parametrize(
    ("stated", "rounds", "code"),
    [
        ('Refutes("small", rounds=3)', 3, 0),
        ("Holds(rounds=2)", 2, 0),
        ("Holds(rounds=3)", 3, 1),
        ('Refutes("small", rounds=2)', 2, 1),
        ("Holds(rounds=2)", 3, 1),
        ('Refutes("small", rounds=3)', 2, 0),
        ("", 3, 1),
    ],
)
def test_the_exit_code_compares_with_what_is_stated(tmp_path: Path, stated: str, rounds: int, code: int) -> None:
    """As expected is 0, not as expected 1; where nothing is said a refutation is 1 and a proof 0."""
    assert code == exit_code([Small(tmp_path, STATED.format(stated)).check(rounds=rounds)])


def test_a_refutation_names_all_that_is_refuted(tmp_path: Path) -> None:
    """In the very configuration of an expectation a property that it does not name must hold; beyond it, it may not."""
    second = '@invariant("tiny")\ndef tiny(m):\n    return m.x < 2\n'
    small = Small(tmp_path, STATED.format('Refutes("small", rounds=3)'), second)
    found = {}
    for rounds in (3, 4):
        params: dict[str, ParamValue] = {"rounds": rounds, "start": 0}
        exact = is_exact(small.variant, "default", "sc", params)
        wanted = expected(small.variant, "default", "sc", params)
        found[rounds] = as_expected(small.search(rounds=rounds), wanted, exact=exact)
    assert {3: False, 4: True} == found


# --- 0010: locals that are not used any more ------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "states"), [("m.x = 3", 5), ("m.x = 3 + n", 8)])
def test_a_local_that_is_not_used_any_more_makes_no_states(tmp_path: Path, last: str, states: int) -> None:
    """Two ways through the code that differ in a local which is not read again lead to one state."""
    body = f"""
        x = Int(0, high=4)

        @thread
        def task(m):
            m.x = 1
            n = 1 if choose() else 0
            m.x = 2
            {last}
            m.x = 0
    """
    assert states == Small(tmp_path, body).search().states


# --- 0011: bounds of locals -----------------------------------------------------------------------------------------

COUNTING = """
    x = Bool()

    @thread
    def task(m):
        {}
        while not m.x:
            n = n + 1

    @thread
    def other(m):
        m.x = True
"""


def test_a_local_without_a_bound_is_refused(tmp_path: Path) -> None:
    """A number that grows with each turn of a loop has no bound that can be found; the remedy is to declare one."""
    with pytest.raises(SpecError, match=re.escape("declare it where it is first assigned: `n: u8 = …`")):
        Small(tmp_path, COUNTING.format("n = 0")).search()


def test_a_declared_local_stays_within_its_bounds(tmp_path: Path) -> None:
    """A local that is declared as u8 may not pass 255; it does not wrap."""
    outcome = Small(tmp_path, COUNTING.format("n: u8 = 0")).search()
    assert {"domain"} == refuted(outcome)
    assert "becomes 256, outside 0 to 255" in story(outcome, "domain")


# --- 0012: store buffers --------------------------------------------------------------------------------------------

BUFFERED = """
    a = SpinLock()
    under = Int(0, high=1, guarded_by=a)
    marked = Int(0, high=1, guarded_by=a)
    free = Int(0, high=1)
    count = Int(0, high=1)
    read = Int(0, high=1)

    @thread
    def task(m):
        spin_lock(m.a)
        m.under = 1
        m.marked = 1
        spin_unlock(m.a)
        m.free = 1
        atomic_inc(m.count)

    @thread
    def other(m):
        spin_lock(m.a)
        n = m.under
        spin_unlock(m.a)
        n = READ_ONCE(m.marked) + READ_ONCE(m.free) + atomic_read(m.count) + READ_ONCE(m.read)
"""


@pytest.mark.parametrize(
    ("memory", "buffered"),
    [
        ("sc", set()),
        ("tso", {"a", "marked", "free"}),
        ("weak", {"a", "marked", "free", "count"}),
    ],
)
def test_a_variable_that_is_touched_under_its_lock_only_needs_no_buffer(
    tmp_path: Path, memory: str, buffered: set[str]
) -> None:
    """Stores are pending for variables that somebody touches without a lock; void atomics are pending on weak."""
    assert buffered == set(Small(tmp_path, BUFFERED).program(memory).locations)


BOTH_MISS = """
    a = SpinLock()
    word = Flags(State)
    n = Int(0, high=2)
    x = Bool()
    y = Bool()
    left_missed = Bool()
    right_missed = Bool()

    @thread
    def left(m):
        WRITE_ONCE(m.x, True)
        {}
        m.left_missed = not READ_ONCE(m.y)

    @thread
    def right(m):
        spin_lock(m.a)
        WRITE_ONCE(m.y, True)
        smp_mb()
        m.right_missed = not READ_ONCE(m.x)
        spin_unlock(m.a)

    @quiescent("one-sees")
    def one_sees(m):
        return not (m.left_missed and m.right_missed)

    @measure("others")
    def others(m):
        return m.n + m.word
"""
"""Store and load on two CPUs: if the left one's load comes before its store is seen, both may miss the other."""
ORDERS = {
    "pass": {"tso", "weak"},
    "smp_wmb()": {"tso", "weak"},
    "smp_mb()": set(),
    "atomic_inc(m.n)": {"weak"},
    "set_bit(State.ONLY, m.word)": {"weak"},
    "smp_mb__after_atomic()": {"tso"},
    "test_and_set_bit(State.ONLY, m.word)": set(),
    "cmpxchg(m.n, 0, 1)": set(),
    "cmpxchg(m.n, 1, 2)": {"weak"},
    "spin_lock(m.a); spin_unlock(m.a)": set(),
    "if spin_trylock(m.a): spin_unlock(m.a)": {"tso", "weak"},
}


@pytest.mark.parametrize(("between", "misses"), ORDERS.items(), ids=ORDERS)
def test_what_waits_for_the_store_buffer(tmp_path: Path, between: str, misses: set[str]) -> None:
    """A trylock that fails waits for nothing; a void atomic waits on x86, where it is LOCKed, and not on weak."""
    small = Small(tmp_path, BOTH_MISS.format(between), above="class State(Bits):\n    ONLY = 0\n")
    assert misses == {memory for memory in ("sc", "tso", "weak") if "one-sees" in refuted(small.search(memory))}


@pytest.mark.parametrize("memory", ["tso", "weak"])
def test_void_atomics_are_not_lost_while_they_are_pending(tmp_path: Path, memory: str) -> None:
    """What is pending is what they do, not the value that comes out: nothing of what two CPUs do is lost."""
    body = """
        word = Flags(State)
        n = Int(0, low=-2, high=2)

        @thread(each=2)
        def task(m, cpu):
            set_bit(cpu, m.word)
            clear_bit(2, m.word)
            atomic_inc(m.n)

        @quiescent("all")
        def everything_counts(m):
            return m.word == 3 and m.n == 2
    """
    small = Small(tmp_path, body, above="class State(Bits):\n    A = 0\n    B = 1\n    C = 2\n")
    assert Verdict.HOLDS is small.search(memory).verdict


@pytest.mark.parametrize(
    ("waits", "misses"), [("synchronize_rcu()", set()), ("pass", {"sc", "tso", "weak"})], ids=["waits", "does not"]
)
def test_the_end_of_a_section_is_seen_behind_its_stores(tmp_path: Path, waits: str, misses: set[str]) -> None:
    """Who has waited for a reader sees all that it stored in its section."""
    body = f"""
        entered = Bool()
        x = Bool()

        @thread
        def reader(m):
            rcu_read_lock()
            WRITE_ONCE(m.entered, True)
            WRITE_ONCE(m.x, True)
            rcu_read_unlock()

        @thread
        def updater(m):
            if READ_ONCE(m.entered):
                {waits}
                check(READ_ONCE(m.x), "the stores of the section are seen")
    """
    small = Small(tmp_path, body)
    assert misses == {memory for memory in ("sc", "tso", "weak") if refuted(small.search(memory))}


def stores(number: int) -> str:
    """Return a model whose thread stores so often without a barrier."""
    lines = "\n".join(f"    WRITE_ONCE(m.x, {i % 2})" for i in range(number))
    return f"x = Int(0, high=1)\n\n@thread\ndef task(m):\n{lines}\n"


@pytest.mark.parametrize(
    ("number", "wanted"),
    [(4, Verdict.HOLDS), (5, Verdict.HOLDS), (16, Verdict.HOLDS), (17, Verdict.INCONCLUSIVE)],
)
def test_a_store_buffer_that_is_too_short_is_made_longer_and_never_passed_over(
    tmp_path: Path, number: int, wanted: Verdict
) -> None:
    """A buffer grows from 4 to 16 entries as needed; a run that needs more is inconclusive."""
    assert wanted == Small(tmp_path, stores(number)).check("tso").outcome.verdict


# --- 0013: check, demand, invariant ---------------------------------------------------------------------------------

JUDGED = """
    x = Int(0, high=3)

    @thread
    def task(m):
        m.x = 1
        {}
        m.x = 2

    @invariant("never-two")
    def never_two(m):
        return m.x != 2
"""


def test_check_ends_its_path_and_demand_does_not(tmp_path: Path) -> None:
    """Behind a check() that fails nothing is searched; behind a demand() that fails everything is."""
    checked = Small(tmp_path, JUDGED.format('check(m.x == 0, "x is 0")')).search()
    demanded = Small(tmp_path, JUDGED.format('demand("zero", m.x == 0)')).search()
    assert ({"check"}, Verdict.INCONCLUSIVE) == (refuted(checked), verdict(checked, "never-two"))
    assert {"zero", "never-two"} == refuted(demanded)


def test_demand_looks_without_a_step(tmp_path: Path) -> None:
    """check() reads shared memory in steps of its own, demand() judges in the step before it."""
    checked = Small(tmp_path, JUDGED.format('check(m.x < 3, "x is small")')).search()
    demanded = Small(tmp_path, JUDGED.format('demand("small", m.x < 3)')).search()
    assert (3, 2) == (checked.depth, demanded.depth)


# --- 0014: inside() -------------------------------------------------------------------------------------------------


def test_inside_counts_threads_whose_next_step_is_there(tmp_path: Path) -> None:
    """A thread is in a function from before its first access until after its last, also in what it calls."""
    body = """
        x = Int(0, high=1)
        y = Int(0, high=1)

        @thread(each=2)
        def task(m, cpu):
            m.y = 0
            m.outer()
            m.y = 1

        def outer(m):
            m.inner()

        def inner(m):
            m.x = 1

        @measure("outer")
        def in_outer(m):
            return inside(m.outer)

        @measure("inner or outer")
        def in_both(m):
            return inside(m.inner, m.outer)

        @invariant("before")
        def before(m):
            return m.x == 1 or m.y == 0
    """
    outcome = Small(tmp_path, body).search()
    assert (2, 2, set()) == (maximum(outcome, "outer"), maximum(outcome, "inner or outer"), refuted(outcome))
    assert ["y = 0", "y = 0"] == texts(outcome, "outer")
