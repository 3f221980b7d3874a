"""Results written by hand, as an engine would give them: what the views are tested with."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from qmodel.result import (
    Change,
    Event,
    Expected,
    MeasureResult,
    Outcome,
    PropertyResult,
    Run,
    Step,
    Strength,
    ThreadInfo,
    Trace,
    Verdict,
)


class Script:
    """Writes a trace event by event; keeps the shared variables, so that what an event changed need not be said."""

    def __init__(self, file: str, **initial: str) -> None:
        self._file = file
        self._initial = tuple(initial.items())
        self._state = dict(initial)
        self._steps: list[list[Event]] = []
        self._function = ""
        self._line = 40

    def step(self, function: str = "") -> None:
        """Begin a step, in a function that stays until another is named."""
        self._function = function or self._function
        self._steps.append([])

    def event(self, thread: int, kind: str, text: str, **after: str) -> None:
        """Add an event to the step; `after` are the variables that it changes."""
        self._line += 1
        changes = tuple(Change(name, self._state[name], value) for name, value in after.items())
        self._state.update(after)
        place = (self._file, self._line, text + ";")
        self._steps[-1].append(Event(thread, self._function, text, kind, *place, changes, (), tuple(after)))

    def quiet(self, thread: int, kind: str, text: str, **after: str) -> None:
        """Add an event that a short picture leaves out."""
        self.event(thread, kind, text, **after)
        self._steps[-1][-1] = replace(self._steps[-1][-1], quiet=True)

    def take(self, thread: int, function: str, lock: str, owner: str) -> None:
        """Begin a step with a spin_lock()."""
        self.step(function)
        self.event(thread, "lock", f"spin_lock(&{lock})", **{lock: owner})

    def give(self, thread: int, lock: str, text: str = "") -> None:
        """Add a spin_unlock(); `text` is how the lock is written, if not by its name."""
        self.event(thread, "unlock", f"spin_unlock(&{text or lock})", **{lock: "free"})

    def trace(self, *story: str) -> Trace:
        """Return what was written so far."""
        steps = tuple(Step(events[0].thread, 0, tuple(events)) for events in self._steps)
        movers = [step.thread for step in steps]
        switches = sum(a != b for a, b in pairwise(movers))
        return Trace(steps, switches, self._initial, story)


def outcome(
    verdict: Verdict,
    threads: tuple[ThreadInfo, ...],
    *properties: PropertyResult,
    measures: tuple[MeasureResult, ...] = (),
    strength: Strength | None = None,
    why: str = "",
    states: int = 1486,
    depth: int = 24,
) -> Outcome:
    """Return an outcome in which only what matters has to be said."""
    return Outcome(
        engine="native",
        reductions=("fusion", "symmetry"),
        threads=threads,
        verdict=verdict,
        strength=strength,
        complete=not why,
        interrupted=False,
        why=why,
        states=states,
        transitions=2 * states,
        depth=depth,
        seconds=states / 150_000,
        bytes_per_state=16.0,
        properties=properties,
        measures=measures,
    )


def run(
    variant: str,
    found: Outcome,
    expected: Expected | None,
    *,
    model: str = "requeue",
    kernel: str = "",
    scenario: str = "default",
    memory: str = "sc",
    as_expected: bool | None = None,
    **params: int | tuple[int, ...],
) -> Run:
    """Return a run; by default it came out as expected if its verdict did."""
    if as_expected is None and expected is not None:
        as_expected = expected.verdict is found.verdict
    return Run(
        model=model,
        variant=variant,
        doc=f"The variant {variant}.",
        kernel=kernel,
        scenario=scenario,
        scenario_doc="",
        params=tuple(params.items()),
        memory=memory,
        spec=f"specs/{model}.py",
        command=f"qmodel check {model} --variant {variant} --cpus 2 --packets 2,0 --busy 2",
        outcome=found,
        expected=expected,
        as_expected=as_expected,
    )


def holds(name: str, doc: str = "") -> PropertyResult:
    """Return a property that holds."""
    return PropertyResult(name, doc, Verdict.HOLDS)


XMIT0 = ThreadInfo("dev_queue_xmit", 0, "task")
XMIT1 = ThreadInfo("dev_queue_xmit", 1, "task")
NET_TX1 = ThreadInfo("net_tx_action", 1, "softirq")
HOLDS = Expected(Verdict.HOLDS)


class _Requeue(Script):
    """The words of net/sched/sch_generic.c, as CPU0 sends and CPU1 runs the queue."""

    def __init__(self) -> None:
        super().__init__(
            "specs/requeue.py",
            root_lock="free",
            tx_lock="free",
            running="false",
            child="[b0]",
            gso_skb="[]",
            qlen="1",
            sched="SCHED",
            wire="[]",
        )
        self._qlen = 1

    def qlen(self, thread: int, text: str, by: int) -> None:
        self._qlen += by
        self.quiet(thread, "store", text, qlen=str(self._qlen))

    def enqueue(self, skb: str, child: str) -> None:
        self.take(0, "__dev_xmit_skb", "root_lock", "CPU0 (dev_queue_xmit)")
        self.step("pfifo_enqueue")
        self.event(0, "list", f"__skb_queue_tail(&child, {skb})", child=child)
        self.qlen(0, "qlen++", 1)
        self.step("qdisc_run_begin")
        self.quiet(0, "load", "running = true")
        self.give(0, "root_lock")

    def net_tx_action(self) -> None:
        self.step("net_tx_action")
        self.quiet(1, "softirq", "<softirq net_tx_action>")
        self.quiet(1, "atomic", "clear_bit(SCHED, &sched)", sched="0")
        self.take_on_cpu1("root_lock")
        self.quiet(1, "store", "running = true", running="true")

    def take_on_cpu1(self, lock: str) -> None:
        self.take(1, "sch_direct_xmit", lock, "CPU1 (net_tx_action)")

    def dequeue(self, skb: str, queue: str, rest: str) -> None:
        self.step("dequeue_skb")
        self.event(1, "list", f"__skb_dequeue(&{queue}) = {skb}", **{queue: rest})
        self.qlen(1, "qlen--", -1)

    def xmit(self, skb: str, wire: str | None) -> None:
        """The driver's answer, between the two locks; `wire` is None where it is busy."""
        self.give(1, "root_lock")
        self.xmit_unlocked(skb, wire)

    def xmit_unlocked(self, skb: str, wire: str | None) -> None:
        self.take_on_cpu1("tx_lock")
        self.step("dev_hard_start_xmit")
        if wire is None:
            self.event(1, "choose", f"ndo_start_xmit({skb}) = NETDEV_TX_BUSY")
        else:
            self.event(1, "wire", f"ndo_start_xmit({skb}) = NETDEV_TX_OK", wire=wire)

    def back(self) -> None:
        self.give(1, "tx_lock")
        self.take_on_cpu1("root_lock")

    def requeue(self, skb: str, rest: str) -> None:
        self.step("dev_requeue_skb")
        self.event(1, "list", f"__skb_queue_tail(&gso_skb, {skb})", gso_skb=rest)
        self.qlen(1, "qlen++", 1)

    def schedule(self) -> None:
        self.quiet(1, "atomic", "set_bit(SCHED, &sched)", sched="SCHED")
        self.quiet(1, "store", "running = false", running="false")
        self.give(1, "root_lock")


def tail_trace() -> Trace:
    """Two busy answers and a requeue at the tail: a1 overtakes a0."""
    s = _Requeue()
    s.net_tx_action()
    s.dequeue("b0", "child", "[]")
    s.give(1, "root_lock")
    s.enqueue("a0", "[a0]")
    s.enqueue("a1", "[a0 a1]")
    s.xmit_unlocked("b0", "[b0]")
    s.back()
    s.dequeue("a0", "child", "[a1]")
    s.dequeue("a1", "child", "[]")
    s.xmit("a0", None)
    s.back()
    s.requeue("a0", "[a0]")
    s.requeue("a1", "[a0 a1]")
    s.schedule()
    s.net_tx_action()
    s.dequeue("a0", "gso_skb", "[a1]")
    s.xmit("a0", None)
    s.back()
    s.requeue("a0", "[a1 a0]")
    s.schedule()
    s.net_tx_action()
    s.dequeue("a1", "gso_skb", "[a0]")
    s.xmit("a1", "[b0 a1]")
    s.back()
    s.dequeue("a0", "gso_skb", "[]")
    s.xmit("a0", "[b0 a1 a0]")
    return s.trace(
        "The driver answers NETDEV_TX_BUSY to the batch [a0 a1], and dev_requeue_skb() puts it into gso_skb.",
        "It is then taken out one by one: a0 is refused again and put behind a1.",
        "Violated: order. CPU0 handed over a0 before a1, and a1 reached the wire first.",
    )


def tail() -> Run:
    """Sample (a): the tail reordering, 2 CPUs."""
    order = PropertyResult(
        "order",
        "the packets of one flow reach the wire in order",
        Verdict.REFUTED,
        "a1 reached the wire before a0",
        tail_trace(),
    )
    found = outcome(Verdict.REFUTED, (XMIT0, NET_TX1), order, holds("no-leak"), holds("qlen"))
    expected = Expected(Verdict.REFUTED, ("order",))
    return run(
        "tail", found, expected, kernel="9540d977618c, v4.16", scenario="scheduled", cpus=2, packets=(2, 1), busy=2
    )


def first_only() -> Run:
    """Sample (b): only the first skb of a batch is put back, 1 CPU."""
    s = Script("specs/requeue.py", root_lock="free", child="[a0]", gso_skb="[]", qlen="1", wire="[]")
    me = "CPU0 (dev_queue_xmit)"
    s.take(0, "__dev_xmit_skb", "root_lock", me)
    s.step("pfifo_enqueue")
    s.event(0, "list", "__skb_queue_tail(&child, a1)", child="[a0 a1]")
    s.event(0, "store", "qlen++", qlen="2")
    s.step("dequeue_skb")
    s.event(0, "list", "__skb_dequeue(&child) = a0", child="[a1]")
    s.event(0, "list", "__skb_dequeue(&child) = a1", child="[]")
    s.event(0, "store", "qlen -= 2", qlen="0")
    s.give(0, "root_lock")
    s.step("dev_hard_start_xmit")
    s.event(0, "choose", "ndo_start_xmit(a0) = NETDEV_TX_BUSY")
    s.take(0, "sch_direct_xmit", "root_lock", me)
    s.step("dev_requeue_skb")
    s.event(0, "list", "__skb_queue_head(&gso_skb, a0)", gso_skb="[a0]")
    s.event(0, "store", "qlen++", qlen="1")
    s.event(0, "fail", "return")
    leak = PropertyResult(
        "no-leak",
        "every skb is sent, freed or still queued",
        Verdict.REFUTED,
        "a1 is lost",
        s.trace(
            "The driver refuses the batch [a0 a1], and dev_requeue_skb() puts only a0 back.",
            "Violated: no-leak. Nobody holds a1 any more, and it was neither sent nor freed.",
        ),
    )
    qlen = PropertyResult("qlen", "the counter is right", Verdict.INCONCLUSIVE, "a leak ended the paths to it")
    found = outcome(Verdict.REFUTED, (XMIT0,), leak, holds("order"), qlen, states=212, depth=9)
    expected = Expected(Verdict.REFUTED, ("no-leak",))
    return run("first-only", found, expected, kernel="a53851e2c321", cpus=1, packets=(2,), busy=1)


def deadlock() -> Run:
    """Sample (c): two devices that redirect to one another, ABBA, 2 CPUs."""
    s = Script("specs/mirred.py", e0_lock="free", e1_lock="free", **{"dev[0]": "[]", "dev[1]": "[]"})
    s.take(0, "__dev_queue_xmit", "e0_lock", "CPU0 (dev_queue_xmit)")
    s.take(1, "__dev_queue_xmit", "e1_lock", "CPU1 (dev_queue_xmit)")
    s.step("tcf_mirred_act")
    s.event(0, "store", "dev[0][nest++] = e1", **{"dev[0]": "[e1]"})
    s.step("tcf_mirred_act")
    s.event(1, "store", "dev[1][nest++] = e0", **{"dev[1]": "[e0]"})
    s.event(0, "wait", "spin_lock(&e1_lock)")
    s.event(1, "wait", "spin_lock(&e0_lock)")
    result = PropertyResult(
        "deadlock",
        "no thread waits for ever for a lock",
        Verdict.REFUTED,
        "CPU0 -> e1_lock -> CPU1 -> e0_lock -> CPU0",
        s.trace(
            "CPU0 holds e0_lock and redirects to e1, CPU1 holds e1_lock and redirects to e0.",
            "Violated: deadlock. CPU0 waits for e1_lock, which CPU1 holds; CPU1 waits for e0_lock, which CPU0 holds.",
        ),
    )
    found = outcome(Verdict.REFUTED, (XMIT0, XMIT1), holds("stack"), result, states=57, depth=6)
    return run("array", found, HOLDS, model="mirred", kernel="fe946a751d9b", cpus=2, packets=(1, 1))


def softirq() -> Run:
    """Sample (d): packets left in the ring, 3 CPUs, one of which also runs its softirq."""
    s = Script("specs/nolock.py", seqlock="free", ring="[]", state="SCHED", wire="[]")

    def produce(thread: int, skb: str, ring: str) -> None:
        s.step("pfifo_fast_enqueue")
        s.quiet(thread, "lock", "spin_lock(&producer_lock)")
        s.event(thread, "list", f"ptr_ring_produce(&q->ring, {skb}) = 0", ring=ring)
        s.quiet(thread, "unlock", "spin_unlock(&producer_lock)")

    def trylock(thread: int, owner: str | None) -> None:
        s.step("qdisc_run_begin")
        if owner:
            s.event(thread, "lock", "spin_trylock(&q->seqlock) = true", seqlock=owner)
        else:
            s.event(thread, "load", "spin_trylock(&q->seqlock) = false")

    def consume(thread: int, skb: str) -> None:
        s.step("pfifo_fast_dequeue")
        s.event(thread, "list", f"__ptr_ring_consume(&q->ring) = {skb}", ring="[]")

    produce(1, "b0", "[b0]")
    trylock(1, "CPU1 (dev_queue_xmit)")
    consume(1, "b0")
    s.event(1, "wire", "ndo_start_xmit(b0) = NETDEV_TX_OK", wire="[b0]")
    s.give(1, "seqlock", "q->seqlock")
    s.step("net_tx_action")
    s.quiet(3, "softirq", "<softirq net_tx_action>")
    s.event(3, "atomic", "clear_bit(__QDISC_STATE_SCHED, &q->state)", state="0")
    trylock(3, "CPU1 (net_tx_action)")
    s.step("pfifo_fast_dequeue")
    s.event(3, "list", "__ptr_ring_consume(&q->ring) = NULL")
    produce(0, "a0", "[a0]")
    produce(2, "c0", "[a0 c0]")
    trylock(2, None)
    trylock(0, None)
    s.give(3, "seqlock", "q->seqlock")
    s.step("dev_queue_xmit")
    s.event(1, "load", "READ_ONCE(sk->sk_wmem_queued) = 0")
    stuck = PropertyResult(
        "stuck",
        "nothing is queued when nothing can move",
        Verdict.REFUTED,
        "ring = [a0 c0]",
        s.trace(
            "CPU1's softirq has found the ring empty and still holds seqlock when a0 and c0 are produced.",
            "Violated: stuck. Nobody is left to send a0 and c0.",
        ),
    )
    threads = (XMIT0, XMIT1, ThreadInfo("dev_queue_xmit", 2, "task"), NET_TX1)
    found = outcome(Verdict.REFUTED, threads, holds("order"), holds("once"), stuck, states=48_201, depth=31)
    expected = Expected(Verdict.REFUTED, ("stuck",))
    return run("seqlock", found, expected, model="nolock", kernel="96009c7d500e, v4.18", cpus=3, packets=(1, 1, 1))


def inconclusive() -> Run:
    """Sample (e): a search that ended at its limit of states."""
    properties = tuple(
        PropertyResult(name, "", Verdict.INCONCLUSIVE, "no violation among the states that were reached")
        for name in ("order", "no-leak", "qlen")
    )
    why = "1,000,000 states reached (--max-states)"
    found = outcome(Verdict.INCONCLUSIVE, (XMIT0, NET_TX1), *properties, why=why, states=1_000_000, depth=40)
    return run("head", found, HOLDS, kernel="v6.12.117", cpus=4, packets=(2, 2, 2, 2), busy=2, as_expected=False)


def measured() -> Run:
    """Sample (f): the longest defer_list for 2 CPUs and a limit of 1."""
    s = Script("specs/llist.py", root_lock="free", defer_list="[]", defer_count="0")

    def read(thread: int, first: str) -> None:
        s.step("__dev_xmit_skb")
        s.event(thread, "load", f"READ_ONCE(defer_list.first) = {first}")

    def count(thread: int, value: int) -> None:
        s.step()
        s.event(thread, "atomic", f"atomic_inc_return(&defer_count) = {value}", defer_count=str(value))

    def push(thread: int, first: str, skb: str, after: str | None) -> None:
        s.step()
        if after:
            s.event(thread, "atomic", f"try_cmpxchg(&first, {first}, {skb}) = true", defer_list=after)
        else:
            s.event(thread, "atomic", f"try_cmpxchg(&first, {first}, {skb}) = false")

    read(0, "NULL")
    push(0, "NULL", "a0", "[a0]")
    read(1, "a0")
    count(1, 1)
    s.take(0, "__dev_xmit_skb", "root_lock", "CPU0 (dev_queue_xmit)")
    s.step()
    s.event(0, "atomic", "llist_del_all(&defer_list) = [a0]", defer_list="[]")
    s.step()
    s.event(0, "atomic", "atomic_set(&defer_count, 0)", defer_count="0")
    s.step("__qdisc_run")
    s.quiet(0, "wire", "ndo_start_xmit(a0) = NETDEV_TX_OK")
    s.give(0, "root_lock")
    read(0, "NULL")
    push(0, "NULL", "a1", "[a1]")
    push(1, "a0", "b0", None)
    push(1, "a1", "b0", "[b0 a1]")
    read(1, "b0")
    count(1, 1)
    push(1, "b0", "b1", "[b1 b0 a1]")
    longest = MeasureResult(
        "defer_list",
        "the length of defer_list",
        3,
        s.trace(
            "b0 was counted before CPU0 set defer_count to 0, and is added after that without being counted again."
        ),
    )
    found = outcome(
        Verdict.HOLDS,
        (XMIT0, XMIT1),
        holds("once"),
        holds("order"),
        measures=(longest, MeasureResult("dropped", "packets that were dropped", 1)),
        strength=Strength.EXHAUSTIVE,
        states=41_234,
        depth=33,
    )
    return run("v2", found, HOLDS, model="llist", kernel="100dfa74cad9, v6.19", cpus=2, packets=(2, 2), limit=1)


SAMPLES = {
    "tail": tail,
    "first_only": first_only,
    "deadlock": deadlock,
    "softirq": softirq,
    "inconclusive": inconclusive,
    "measured": measured,
}
