"""An explicit-state oracle for the requeue of a locked (not TCQ_F_NOLOCK) qdisc: one queue, sequentially consistent.

It shares no code with qmodel. Every thread is written out by hand as a list of places (`At`), each named after the one
access to shared memory that is taken there; a plain breadth-first search takes them in every order. Clear, not fast.

What a step is
    One access to shared memory: a lock or an unlock, a read or a write of a flag or a counter, one call on a list. So
    `qlen += n` is two (a read, a write), and finding a list empty when taking its head is one. Raising net_tx_action is
    a step of its own, behind the test_and_set_bit() that found the bit clear.
    Switching bottom halves off is a step too, so that there is a place before it where net_tx_action can come in; they
    are on again with the spin_unlock() before local_bh_enable(). The start of net_tx_action is one step: it takes the
    CPU away from the task, and the mark that raised it is gone.
    Work on a thread's own variables is free, and part of the step before it. So is the driver's answer: it is given
    with the access that leads to the call of the driver.

Places
    Code that is called from several places is there once for each of them, as if it were inlined: `Call` tells in which
    of them a thread is. So two states differ also where nothing does but the way by which a thread will return.

Threads
    CPU i's task sends the packets of flow i, in order: a0, a1 … for CPU 0, b0, b1 … for CPU 1. Each CPU has a
    net_tx_action of its own, which starts when it was raised there and the CPU's bottom halves are on (for a task:
    between two sends); until it ends, the CPU does nothing else. The waker and the freezer have a CPU and a
    net_tx_action each; bottom halves are off there only while the freezer waits for the driver lock or holds it.

Properties
    order     no packet reaches the wire after a later packet of its flow   (every step that sends)
    once      no packet is in two places, none is sent twice                (every step)
    no-leak   what was handed over is sent, in a queue, or held by a thread (every state)
    qlen      qlen == len(child) + len(gso_skb)                             (states where root_lock is free)
    stuck     nothing is queued                                             (states at rest, neither XOFF nor FROZEN)
    deadlock  all is done                                                   (states without a next step)
A thread holds a packet as long as it can still do something with it. What violates `once` is not followed any further.
Every other violation ends nothing: a lost packet is nowhere from there on, and the search goes on until it has seen
every state.

    python requeue_oracle.py            the table of known scenarios; exit status 1 if a claim is not met
    python requeue_oracle.py --runs     and the shortest run to every violation, step by step
"""

# ruff: noqa: T201 (a script that stands alone, and prints)

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Variant = Literal["tail", "head", "head-each", "first-only", "single-pointer"]
Role = Literal["sender", "waker", "freezer"]
Packets = tuple[str, ...]

XOFF = 1
FROZEN = 2


class At(StrEnum):
    """Where a thread stands: the access that it takes next."""

    REST = "at rest"

    # dev_queue_xmit(): __dev_xmit_skb(), whose local_bh_disable() is the step out of REST.
    SEND_LOCK_ROOT = "__dev_xmit_skb: spin_lock(root_lock)"
    BYPASS_READ_QLEN = "__dev_xmit_skb: read qlen"
    BYPASS_READ_RUNNING = "__dev_xmit_skb: qdisc_run_begin: read running"
    BYPASS_SET_RUNNING = "__dev_xmit_skb: qdisc_run_begin: running = true"
    ENQUEUE = "enqueue: child append"
    ENQUEUE_READ_QLEN = "enqueue: read qlen"
    ENQUEUE_WRITE_QLEN = "enqueue: write qlen"

    # net_tx_action(), which the step out of REST starts.
    SOFTIRQ_LOCK_ROOT = "net_tx_action: spin_lock(root_lock)"
    SOFTIRQ_CLEAR_SCHED = "net_tx_action: clear_bit(SCHED)"

    # qdisc_run() and the end of the critical section, for both.
    RUN_READ_RUNNING = "qdisc_run_begin: read running"
    RUN_SET_RUNNING = "qdisc_run_begin: running = true"
    RUN_CLEAR_RUNNING = "qdisc_run_end: running = false"
    UNLOCK_ROOT = "spin_unlock(root_lock)"

    # dequeue_skb(), by the owner.
    DEQUEUE_TEST_GSO = "dequeue_skb: gso_skb empty?"
    DEQUEUE_GSO_READ_TXQ = "dequeue_skb: read txq state for gso_skb"
    DEQUEUE_GSO_TAKE = "dequeue_skb: gso_skb take"
    DEQUEUE_GSO_READ_QLEN = "dequeue_skb: read qlen for gso_skb"
    DEQUEUE_GSO_WRITE_QLEN = "dequeue_skb: write qlen for gso_skb"
    DEQUEUE_CHILD_READ_TXQ = "dequeue_skb: read txq state"
    DEQUEUE_CHILD_TAKE = "dequeue_skb: child take"
    DEQUEUE_CHILD_READ_QLEN = "dequeue_skb: read qlen"
    DEQUEUE_CHILD_WRITE_QLEN = "dequeue_skb: write qlen"

    # sch_direct_xmit(), and the driver that it calls.
    XMIT_UNLOCK_ROOT = "sch_direct_xmit: spin_unlock(root_lock)"
    XMIT_LOCK_TX = "sch_direct_xmit: spin_lock(tx_lock)"
    XMIT_READ_TXQ = "sch_direct_xmit: read txq state"
    XMIT_WIRE = "driver: the packet goes on the wire"
    XMIT_BUSY_SET_XOFF = "driver: NETDEV_TX_BUSY: set_bit(XOFF)"
    XMIT_FULL_SET_XOFF = "driver: the packet was the last one that fits: set_bit(XOFF)"
    XMIT_TEST_XOFF = "dev_hard_start_xmit: test_bit(XOFF)"
    XMIT_UNLOCK_TX = "sch_direct_xmit: spin_unlock(tx_lock)"
    XMIT_LOCK_ROOT = "sch_direct_xmit: spin_lock(root_lock)"

    # dev_requeue_skb(), and the __netif_schedule() behind it.
    REQUEUE_PUT = "dev_requeue_skb: gso_skb put"
    REQUEUE_READ_QLEN = "dev_requeue_skb: read qlen"
    REQUEUE_WRITE_QLEN = "dev_requeue_skb: write qlen"
    REQUEUE_SCHEDULE = "__netif_schedule: test_and_set_bit(SCHED)"
    REQUEUE_RAISE = "__netif_schedule: raise_softirq(net_tx_action)"

    # The freezer, behind the local_bh_disable() that is the step out of REST; its schedule is the waker's too.
    FREEZE_LOCK_TX = "freezer: spin_lock(tx_lock)"
    FREEZE_SET_FROZEN = "freezer: set_bit(FROZEN)"
    FREEZE_UNLOCK_TX = "freezer: spin_unlock(tx_lock)"
    FREEZE_CLEAR_FROZEN = "freezer: clear_bit(FROZEN)"
    ENVIRONMENT_SCHEDULE = "__netif_schedule: test_and_set_bit(SCHED), environment"
    ENVIRONMENT_RAISE = "__netif_schedule: raise_softirq(net_tx_action), environment"


class Call(StrEnum):
    """By which call a thread came to code that is called from several places."""

    NONE = "none"
    DIRECT = "sch_direct_xmit() of a bypass, with the packet that bypasses the queue"
    BYPASS = "__qdisc_run() or qdisc_run_end() of a bypass, behind that packet"
    RUN = "qdisc_run()"


class Thread(NamedTuple):
    """A thread's place and its own variables; all but the place are back at their defaults when it rests."""

    at: At = At.REST
    call: Call = Call.NONE
    chain: Packets = ()  # the packets that it holds
    qlen: int = 0  # what it read from qlen, until it writes it back
    growth: int = 0  # by how much a requeue raises qlen


class Cpu(NamedTuple):
    """A CPU: what runs on it, and whether net_tx_action was raised there."""

    task: Thread = Thread()  # a sender, the waker or the freezer
    softirq: Thread = Thread()
    raised: bool = False
    begun: int = 0  # packets handed over, or actions taken


class State(NamedTuple):
    """All of the shared memory, and every thread."""

    root_locked: bool
    tx_locked: bool
    running: bool
    sched: bool
    txq: int
    qlen: int
    child: Packets
    gso: Packets
    sent: frozenset[str]
    busy_left: int
    full_left: int
    cpus: tuple[Cpu, ...]


class Step(NamedTuple):
    """One step to a state (None where the run ends with it), and the properties that the step itself violates."""

    text: str
    to: State | None
    violates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """What does not change during a run."""

    variant: Variant
    roles: tuple[Role, ...]  # of each CPU
    flows: tuple[Packets, ...]  # what each CPU's task sends; nothing for the environment
    budgets: tuple[int, ...]  # how often each CPU's task acts: packets, wakes, freezes
    parked: Packets
    stop: bool
    full: int
    bypass: bool
    bulk: int


@dataclass(frozen=True)
class Result:
    """What the search found. `violated` maps a property to the number of steps of the shortest run that violates it."""

    states: int
    layers: tuple[int, ...]  # states by the number of steps of a shortest run to them
    violated: dict[str, int]
    transitions: int
    depth: int
    quiescent: int  # states at rest: where `stuck` was judged
    runs: dict[str, tuple[str, ...]] = field(repr=False)  # the steps of one such shortest run


# --- one step of the code that senders and net_tx_action share -------------------------------------------------------


def with_cpu(s: State, cpu: int, changed: Cpu) -> State:
    """Put another value in the place of one CPU."""
    return s._replace(cpus=(*s.cpus[:cpu], changed, *s.cpus[cpu + 1 :]))


def schedule(s: State, me: Thread, to_raise: At, done: Thread) -> tuple[State, Thread]:
    """Take the test_and_set_bit(SCHED) of __netif_schedule(): whoever finds the bit clear raises net_tx_action."""
    return (s, done) if s.sched else (s._replace(sched=True), me._replace(at=to_raise))


def raise_softirq(s: State, cpu: int) -> State:
    """Raise net_tx_action on a CPU."""
    return with_cpu(s, cpu, s.cpus[cpu]._replace(raised=True))


def driver_answers(config: Config, s: State, me: Thread) -> Iterator[tuple[State, Thread]]:
    """Let the driver take the first packet of the chain, or none of it while it may still say so."""
    yield s, me._replace(at=At.XMIT_WIRE)
    if s.busy_left:
        after = At.XMIT_BUSY_SET_XOFF if config.stop else At.XMIT_UNLOCK_TX
        yield s._replace(busy_left=s.busy_left - 1), me._replace(at=after)


def after_a_packet(config: Config, s: State, me: Thread) -> Iterator[tuple[State, Thread]]:
    """Go on behind a packet that the driver took: with the next one, after a look at the queue if it can be full."""
    if not me.chain:
        yield s, me._replace(at=At.XMIT_UNLOCK_TX)
    elif config.full:
        yield s, me._replace(at=At.XMIT_TEST_XOFF)
    else:
        yield from driver_answers(config, s, me)


def back_from_direct(me: Thread, at: At) -> Thread:
    """Return from sch_direct_xmit(): to the bypass with the packet that bypassed, else to the loop around it."""
    return me._replace(at=at, call=Call.BYPASS if me.call is Call.DIRECT else me.call)


def requeue_put(variant: Variant, gso: Packets, chain: Packets) -> tuple[Packets, Packets, int]:
    """One access of dev_requeue_skb(): what gso_skb is then, what the thread still has to put, how much qlen grows."""
    first, rest = chain[:1], chain[1:]
    match variant:
        case "tail":
            return gso + first, rest, 1
        case "head":
            return chain + gso, (), len(chain)
        case "head-each" | "first-only":  # first-only has no rest here: see XMIT_LOCK_ROOT
            return first + gso, rest, 1
        case "single-pointer":
            return chain, (), 1


def take_access(config: Config, s: State, cpu: int, me: Thread) -> Iterator[tuple[State, Thread]]:
    """Take the access at which a thread stands: one result for each answer that the driver may give after it.

    Nothing is yielded where the thread has to wait for a lock.
    """
    match me.at:
        case At.SEND_LOCK_ROOT:
            if not s.root_locked:
                after = At.BYPASS_READ_QLEN if config.bypass else At.ENQUEUE
                yield s._replace(root_locked=True), me._replace(at=after)

        # __dev_xmit_skb(): an empty qdisc that nobody runs is bypassed.
        case At.BYPASS_READ_QLEN:
            yield s, me._replace(at=At.BYPASS_READ_RUNNING if s.qlen == 0 else At.ENQUEUE)
        case At.BYPASS_READ_RUNNING:
            yield s, me._replace(at=At.ENQUEUE if s.running else At.BYPASS_SET_RUNNING)
        case At.BYPASS_SET_RUNNING:
            yield s._replace(running=True), me._replace(at=At.XMIT_UNLOCK_ROOT, call=Call.DIRECT)
        case At.ENQUEUE:
            yield s._replace(child=s.child + me.chain), me._replace(at=At.ENQUEUE_READ_QLEN, chain=())
        case At.ENQUEUE_READ_QLEN:
            yield s, me._replace(at=At.ENQUEUE_WRITE_QLEN, qlen=s.qlen)
        case At.ENQUEUE_WRITE_QLEN:
            yield s._replace(qlen=me.qlen + 1), me._replace(at=At.RUN_READ_RUNNING, qlen=0)

        # net_tx_action(), once it runs
        case At.SOFTIRQ_LOCK_ROOT:
            if not s.root_locked:
                yield s._replace(root_locked=True), me._replace(at=At.SOFTIRQ_CLEAR_SCHED)
        case At.SOFTIRQ_CLEAR_SCHED:
            yield s._replace(sched=False), me._replace(at=At.RUN_READ_RUNNING)

        # qdisc_run(). After its own packet was transmitted directly a sender goes on as if it had dequeued it: with the
        # loop after a success, with qdisc_run_end() after a failure.
        case At.RUN_READ_RUNNING:
            yield s, me._replace(at=At.UNLOCK_ROOT if s.running else At.RUN_SET_RUNNING)
        case At.RUN_SET_RUNNING:
            yield s._replace(running=True), me._replace(at=At.DEQUEUE_TEST_GSO, call=Call.RUN)
        case At.RUN_CLEAR_RUNNING:
            yield s._replace(running=False), me._replace(at=At.UNLOCK_ROOT, call=Call.NONE)
        case At.UNLOCK_ROOT:
            yield s._replace(root_locked=False), me._replace(at=At.REST)

        # dequeue_skb(): first what was put back, one at a time (a single pointer: all of it).
        case At.DEQUEUE_TEST_GSO:
            yield s, me._replace(at=At.DEQUEUE_GSO_READ_TXQ if s.gso else At.DEQUEUE_CHILD_READ_TXQ)
        case At.DEQUEUE_GSO_READ_TXQ:
            yield s, me._replace(at=At.RUN_CLEAR_RUNNING if s.txq else At.DEQUEUE_GSO_TAKE)
        case At.DEQUEUE_GSO_TAKE:
            taken = len(s.gso) if config.variant == "single-pointer" else 1
            yield s._replace(gso=s.gso[taken:]), me._replace(at=At.DEQUEUE_GSO_READ_QLEN, chain=s.gso[:taken])
        case At.DEQUEUE_GSO_READ_QLEN:
            yield s, me._replace(at=At.DEQUEUE_GSO_WRITE_QLEN, qlen=s.qlen)
        case At.DEQUEUE_GSO_WRITE_QLEN:
            yield s._replace(qlen=me.qlen - 1), me._replace(at=At.XMIT_UNLOCK_ROOT, qlen=0)

        # Then the child queue, up to `bulk` packets of it in one chain.
        case At.DEQUEUE_CHILD_READ_TXQ:
            yield s, me._replace(at=At.RUN_CLEAR_RUNNING if s.txq else At.DEQUEUE_CHILD_TAKE)
        case At.DEQUEUE_CHILD_TAKE:
            if s.child:
                chain = me.chain + s.child[:1]
                yield s._replace(child=s.child[1:]), me._replace(at=At.DEQUEUE_CHILD_READ_QLEN, chain=chain)
            else:
                yield s, me._replace(at=At.XMIT_UNLOCK_ROOT if me.chain else At.RUN_CLEAR_RUNNING)
        case At.DEQUEUE_CHILD_READ_QLEN:
            yield s, me._replace(at=At.DEQUEUE_CHILD_WRITE_QLEN, qlen=s.qlen)
        case At.DEQUEUE_CHILD_WRITE_QLEN:
            more = len(me.chain) < config.bulk
            after = At.DEQUEUE_CHILD_TAKE if more else At.XMIT_UNLOCK_ROOT
            yield s._replace(qlen=me.qlen - 1), me._replace(at=after, qlen=0)

        # sch_direct_xmit(): the chain is what was not sent yet. `running` keeps the others out while root_lock is free.
        case At.XMIT_UNLOCK_ROOT:
            yield s._replace(root_locked=False), me._replace(at=At.XMIT_LOCK_TX)
        case At.XMIT_LOCK_TX:
            if not s.tx_locked:
                yield s._replace(tx_locked=True), me._replace(at=At.XMIT_READ_TXQ)
        case At.XMIT_READ_TXQ:
            if s.txq:
                yield s, me._replace(at=At.XMIT_UNLOCK_TX)
            else:
                yield from driver_answers(config, s, me)
        case At.XMIT_WIRE:
            sent, me = s._replace(sent=s.sent | {me.chain[0]}), me._replace(chain=me.chain[1:])
            yield from after_a_packet(config, sent, me)
            if sent.full_left:
                yield sent._replace(full_left=sent.full_left - 1), me._replace(at=At.XMIT_FULL_SET_XOFF)
        case At.XMIT_BUSY_SET_XOFF:
            yield s._replace(txq=s.txq | XOFF), me._replace(at=At.XMIT_UNLOCK_TX)
        case At.XMIT_FULL_SET_XOFF:
            yield from after_a_packet(config, s._replace(txq=s.txq | XOFF), me)
        case At.XMIT_TEST_XOFF:
            if s.txq & XOFF:
                yield s, me._replace(at=At.XMIT_UNLOCK_TX)
            else:
                yield from driver_answers(config, s, me)
        case At.XMIT_UNLOCK_TX:
            yield s._replace(tx_locked=False), me._replace(at=At.XMIT_LOCK_ROOT)
        case At.XMIT_LOCK_ROOT:
            if s.root_locked:
                return
            if not me.chain:
                me = back_from_direct(me, At.DEQUEUE_TEST_GSO)
            elif config.variant == "first-only":  # it takes the first packet, and has no use for the rest any more
                me = me._replace(at=At.REQUEUE_PUT, chain=me.chain[:1])
            else:
                me = me._replace(at=At.REQUEUE_PUT)
            yield s._replace(root_locked=True), me

        # dev_requeue_skb(), where the variants differ.
        case At.REQUEUE_PUT:
            gso, rest, growth = requeue_put(config.variant, s.gso, me.chain)
            yield s._replace(gso=gso), me._replace(at=At.REQUEUE_READ_QLEN, chain=rest, growth=growth)
        case At.REQUEUE_READ_QLEN:
            yield s, me._replace(at=At.REQUEUE_WRITE_QLEN, qlen=s.qlen)
        case At.REQUEUE_WRITE_QLEN:
            after = At.REQUEUE_PUT if me.chain else At.REQUEUE_SCHEDULE
            yield s._replace(qlen=me.qlen + me.growth), me._replace(at=after, qlen=0, growth=0)
        case At.REQUEUE_SCHEDULE:
            yield schedule(s, me, At.REQUEUE_RAISE, back_from_direct(me, At.RUN_CLEAR_RUNNING))
        case At.REQUEUE_RAISE:
            yield raise_softirq(s, cpu), back_from_direct(me, At.RUN_CLEAR_RUNNING)

        # The environment, once it has begun to act.
        case At.FREEZE_LOCK_TX:
            if not s.tx_locked:
                yield s._replace(tx_locked=True), me._replace(at=At.FREEZE_SET_FROZEN)
        case At.FREEZE_SET_FROZEN:
            yield s._replace(txq=s.txq | FROZEN), me._replace(at=At.FREEZE_UNLOCK_TX)
        case At.FREEZE_UNLOCK_TX:
            yield s._replace(tx_locked=False), me._replace(at=At.FREEZE_CLEAR_FROZEN)
        case At.FREEZE_CLEAR_FROZEN:
            yield s._replace(txq=s.txq & ~FROZEN), me._replace(at=At.ENVIRONMENT_SCHEDULE)
        case At.ENVIRONMENT_SCHEDULE:
            yield schedule(s, me, At.ENVIRONMENT_RAISE, Thread())
        case At.ENVIRONMENT_RAISE:
            yield raise_softirq(s, cpu), Thread()

        case At.REST:
            raise AssertionError("a thread at rest is started in steps()")
        case _:
            assert_never(me.at)


# --- who may step ----------------------------------------------------------------------------------------------------


def begin_task(config: Config, s: State, cpu: int) -> tuple[State, Thread]:
    """Take the first step of a resting task: of its next send, wake or freeze. It never has to wait."""
    match config.roles[cpu]:
        case "sender":
            skb = config.flows[cpu][s.cpus[cpu].begun]
            return s, Thread(At.SEND_LOCK_ROOT, chain=(skb,))
        case "waker":
            at = At.ENVIRONMENT_SCHEDULE if s.txq & XOFF else At.REST
            return s._replace(txq=s.txq & ~XOFF), Thread(at)
        case "freezer":
            return s, Thread(At.FREEZE_LOCK_TX)


BEGIN_TEXT: dict[Role, str] = {
    "sender": "dev_queue_xmit: local_bh_disable()",
    "waker": "waker: test_and_clear_bit(XOFF)",
    "freezer": "freezer: local_bh_disable()",
}


def bottom_halves_on(config: Config, cpu: int, task: Thread) -> bool:
    """Whether net_tx_action may interrupt the task where it stands."""
    if config.roles[cpu] == "sender":
        return task.at is At.REST
    return task.at not in (At.FREEZE_LOCK_TX, At.FREEZE_SET_FROZEN, At.FREEZE_UNLOCK_TX)


def taken(text: str, s: State, me: Thread, to: State) -> Step:
    """Make a step of an access: with what it violates, and to nowhere if it puts a packet into a second place."""
    violated = []
    if me.at is At.XMIT_WIRE:
        packet = me.chain[0]
        if packet in s.sent:
            return Step(text, None, ("once",))
        if any(flow(other) == flow(packet) and number(other) > number(packet) for other in s.sent):
            violated.append("order")
    places = places_of(to)
    if len(places) != len(set(places)):
        return Step(text, None, (*violated, "once"))
    return Step(text, to, tuple(violated))


def steps(config: Config, s: State) -> Iterator[Step]:
    """List every step that can be taken next."""
    for i, cpu in enumerate(s.cpus):
        task, softirq = cpu.task, cpu.softirq
        if softirq.at is not At.REST:
            for after, thread in take_access(config, s, i, softirq):
                text = f"CPU{i} net_tx_action | {describe(s, softirq)}"
                yield taken(text, s, softirq, with_cpu(after, i, after.cpus[i]._replace(softirq=thread)))
            continue
        if cpu.raised and bottom_halves_on(config, i, task):
            started = cpu._replace(softirq=Thread(At.SOFTIRQ_LOCK_ROOT), raised=False)
            yield Step(f"CPU{i} net_tx_action | starts", with_cpu(s, i, started))
        if task.at is not At.REST:
            for after, thread in take_access(config, s, i, task):
                text = f"CPU{i} {config.roles[i]} | {describe(s, task)}"
                yield taken(text, s, task, with_cpu(after, i, after.cpus[i]._replace(task=thread)))
        elif cpu.begun < config.budgets[i]:
            after, thread = begin_task(config, s, i)
            text = f"CPU{i} {config.roles[i]} | {BEGIN_TEXT[config.roles[i]]}"
            yield Step(text, with_cpu(after, i, cpu._replace(task=thread, begun=cpu.begun + 1)))


def describe(s: State, me: Thread) -> str:
    """Write a step down for a run: the access, and what was there before it."""
    return f"{me.at} {list(me.chain)} child={list(s.child)} gso_skb={list(s.gso)} qlen={s.qlen} txq={s.txq}"


# --- the properties of a state ---------------------------------------------------------------------------------------


def flow(packet: str) -> str:
    """Return the flow of a packet: a for a0."""
    return packet[0]


def number(packet: str) -> int:
    """Return the place of a packet in its flow: 0 for a0."""
    return int(packet[1:])


def places_of(s: State) -> list[str]:
    """List the packets that are somewhere, each as often as it is."""
    places = [*s.child, *s.gso, *s.sent]
    for cpu in s.cpus:
        places += [*cpu.task.chain, *cpu.softirq.chain]
    return places


def is_quiescent(config: Config, s: State) -> bool:
    """Whether all may rest like this for ever: every send has ended, nothing is raised, the queue could be used."""
    for role, budget, cpu in zip(config.roles, config.budgets, s.cpus, strict=True):
        if cpu.raised or cpu.task.at is not At.REST or cpu.softirq.at is not At.REST:
            return False
        if role == "sender" and cpu.begun < budget:
            return False
    return s.txq == 0


def is_unfinished(config: Config, s: State) -> bool:
    """Whether a thread is under way, or a sender still has packets."""
    for role, budget, cpu in zip(config.roles, config.budgets, s.cpus, strict=True):
        if cpu.task.at is not At.REST or cpu.softirq.at is not At.REST:
            return True
        if role == "sender" and cpu.begun < budget:
            return True
    return False


def violated_in(config: Config, s: State, *, last: bool) -> Iterator[str]:
    """List the properties that a state violates. `last`: no step leads out of it."""
    handed_over = set(config.parked)
    for packets, cpu in zip(config.flows, s.cpus, strict=True):
        handed_over.update(packets[: cpu.begun])
    if not handed_over <= set(places_of(s)):
        yield "no-leak"
    if not s.root_locked and s.qlen != len(s.child) + len(s.gso):
        yield "qlen"
    if (s.child or s.gso) and is_quiescent(config, s):
        yield "stuck"
    if last and is_unfinished(config, s):
        yield "deadlock"


# --- the search ------------------------------------------------------------------------------------------------------


def explore(
    variant: Variant,
    cpus: int,
    packets: tuple[int, ...],
    busy: int,
    *,
    stop: bool = False,
    wakes: int = 0,
    freezes: int = 0,
    full: int = 0,
    bypass: bool = True,
    bulk: int = 2,
    child: Sequence[str] = (),
    gso: Sequence[str] = (),
    raised: bool = False,
) -> Result:
    """Search every state.

    `packets` says how many each CPU sends. `child` and `gso` name the packets that are parked at the start, as in
    ("a0", "a1"); the senders go on after them, and qlen counts each of them, whatever the variant. `raised`: SCHED is
    set at the start, net_tx_action raised on CPU 0.
    """
    config, start = set_up(
        variant=variant,
        cpus=cpus,
        packets=packets,
        busy=busy,
        stop=stop,
        wakes=wakes,
        freezes=freezes,
        full=full,
        bypass=bypass,
        bulk=bulk,
        child=tuple(child),
        gso=tuple(gso),
        raised=raised,
    )
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    violated: dict[str, int] = {}
    runs: dict[str, tuple[str, ...]] = {}
    layers: list[int] = []
    transitions = depth = quiescent = 0

    def run_to(state: State) -> tuple[str, ...]:
        texts = []
        while (link := came_from[state]) is not None:
            state, text = link
            texts.append(text)
        return tuple(reversed(texts))

    def note(name: str, length: int, run: tuple[str, ...]) -> None:
        assert len(run) == length
        if length < violated.get(name, length + 1):
            violated[name] = length
            runs[name] = run

    frontier = [start]
    while frontier:
        layers.append(len(frontier))
        found: list[State] = []
        for state in frontier:
            following = list(steps(config, state))
            transitions += sum(step.to is not None for step in following)
            quiescent += is_quiescent(config, state)
            for name in violated_in(config, state, last=not following):
                if name not in violated:
                    note(name, depth, run_to(state))
            for step in following:
                for name in step.violates:
                    if name not in violated:
                        note(name, depth + 1, (*run_to(state), step.text))
                if step.to is not None and step.to not in came_from:
                    came_from[step.to] = (state, step.text)
                    found.append(step.to)
        frontier = found
        depth += bool(found)
    return Result(len(came_from), tuple(layers), violated, transitions, depth, quiescent, runs)


def set_up(
    *,
    variant: Variant,
    cpus: int,
    packets: tuple[int, ...],
    busy: int,
    stop: bool,
    wakes: int,
    freezes: int,
    full: int,
    bypass: bool,
    bulk: int,
    child: Packets,
    gso: Packets,
    raised: bool,
) -> tuple[Config, State]:
    """Make the configuration and the state in which it starts."""
    parked = (*child, *gso)
    if variant not in get_args(Variant):
        raise ValueError(f"unknown variant {variant!r}: one of {', '.join(get_args(Variant))}")
    if cpus < 1 or len(packets) != cpus:
        raise ValueError(f"{cpus} CPUs, but packets for {len(packets)}")
    if min(*packets, busy, wakes, freezes, full) < 0 or bulk < 1:
        raise ValueError("a count is negative, or bulk is 0")
    flows: list[Packets] = []
    for i, count in enumerate(packets):
        name = "abcdefghijklmnopqrstuvwxyz"[i]
        first = sum(flow(packet) == name for packet in parked)
        if {number(packet) for packet in parked if flow(packet) == name} != set(range(first)):
            raise ValueError(f"the parked packets of flow {name} are not {name}0, {name}1 …, each once")
        flows.append(tuple(f"{name}{k}" for k in range(first, first + count)))
    environment: list[tuple[Role, int]] = [("waker", wakes), ("freezer", freezes)]
    present = [(role, budget) for role, budget in environment if budget]
    senders: list[Role] = ["sender"] * cpus
    config = Config(
        variant=variant,
        roles=(*senders, *(role for role, _ in present)),
        flows=(*flows, *(() for _ in present)),
        budgets=(*packets, *(budget for _, budget in present)),
        parked=parked,
        stop=stop,
        full=full,
        bypass=bypass,
        bulk=bulk,
    )
    start = State(
        root_locked=False,
        tx_locked=False,
        running=False,
        sched=raised,
        txq=0,
        qlen=len(parked),
        child=child,
        gso=gso,
        sent=frozenset(),
        busy_left=busy,
        full_left=full,
        cpus=tuple(Cpu(raised=raised and i == 0) for i in range(len(config.roles))),
    )
    return config, start


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A scenario, and the properties that it is claimed to violate; None where nothing is claimed."""

    name: str
    variant: Variant
    packets: tuple[int, ...]
    busy: int
    claim: frozenset[str] | None
    stop: bool = False
    wakes: int = 0
    freezes: int = 0
    child: Packets = ()
    gso: Packets = ()
    raised: bool = False

    def explore(self) -> Result:
        """Search it."""
        return explore(
            self.variant,
            len(self.packets),
            self.packets,
            self.busy,
            stop=self.stop,
            wakes=self.wakes,
            freezes=self.freezes,
            child=self.child,
            gso=self.gso,
            raised=self.raised,
        )


HOLDS: frozenset[str] = frozenset()
ORDER = frozenset({"order"})
LEAK = frozenset({"no-leak"})
QLEN = frozenset({"qlen"})
A0: Packets = ("a0",)
A0_A1: Packets = ("a0", "a1")

ROWS = (
    Row("child [a0] / a1", "tail", (1,), 1, HOLDS, child=A0),
    Row("child [a0] / a1", "tail", (1,), 2, ORDER, child=A0),
    Row("child [a0] / a1, stop", "single-pointer", (1,), 1, QLEN, stop=True, child=A0),
    Row("child [a0] / a1", "first-only", (1,), 1, LEAK, child=A0),
    Row("child [a0] / a1", "head-each", (1,), 1, ORDER, child=A0),
    Row("child [a0] / a1, stop, 3 wakes", "head", (1,), 2, HOLDS, stop=True, wakes=3, child=A0),
    Row("gso [a0,a1] / a2, 1 freeze", "tail", (1,), 0, ORDER, freezes=1, gso=A0_A1),
    Row("gso [a0,a1], raised, 1 freeze", "tail", (0,), 0, None, freezes=1, gso=A0_A1, raised=True),
    Row("gso [a0,a1] / a2, 1 freeze", "head", (1,), 0, HOLDS, freezes=1, gso=A0_A1),
    Row("gso [a0,a1] / a2, 2 freezes", "head", (1,), 0, HOLDS, freezes=2, gso=A0_A1),
    Row("a0,a1 / b0", "tail", (2, 1), 1, None),
    Row("a0,a1 / b0", "tail", (2, 1), 2, None),
    Row("a0,a1 / b0", "head", (2, 1), 1, HOLDS),
    Row("a0,a1 / b0", "head", (2, 1), 2, HOLDS),
    Row("a0,a1 / b0,b1", "tail", (2, 2), 1, None),
    Row("a0,a1 / b0,b1", "tail", (2, 2), 2, None),
    Row("a0,a1 / b0,b1", "head", (2, 2), 1, HOLDS),
    Row("a0,a1 / b0,b1", "head", (2, 2), 2, HOLDS),
)


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if a claim is not met."""
    if unknown := set(arguments) - {"--runs"}:
        print(f"requeue_oracle.py: unknown argument {min(unknown)}; there is only --runs", file=sys.stderr)
        return 2
    status = 0
    head = f"{'scenario':<31}{'variant':<16}{'busy':>4}{'states':>9}{'steps':>9}{'depth':>7}{'rest':>6}"
    print(f"{head}  {'violated (steps)':<18}claim")
    for row in ROWS:
        result = row.explore()
        violated = ", ".join(f"{name} {length}" for name, length in sorted(result.violated.items())) or "-"
        met = row.claim is None or row.claim == result.violated.keys()
        claim = "none" if row.claim is None else ", ".join(sorted(row.claim)) or "holds"
        counts = f"{result.states:>9}{result.transitions:>9}{result.depth:>7}{result.quiescent:>6}"
        mark = "" if met else "  NOT MET"
        print(f"{row.name:<31}{row.variant:<16}{row.busy:>4}{counts}  {violated:<18}{claim}{mark}")
        if "--runs" in arguments:
            for name, run in sorted(result.runs.items()):
                print(f"    {name}:")
                for k, text in enumerate(run, 1):
                    print(f"    {k:>4}  {text}")
        status |= not met
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
