"""include/net/sch_generic.h: qdisc_run_begin() and qdisc_run_end() of locked qdiscs.

Whoever sets `running` owns the queue between dequeue and transmit, where the root lock is not held. All else is as in
requeue, with the chain put back in front.
"""

from qmodel.lang import (
    BIT,
    READ_ONCE,
    WRITE_ONCE,
    Bits,
    Flags,
    Holds,
    Kernel,
    Packets,
    Refutes,
    __clear_bit,
    __set_bit,
    __skb_queue_tail,
    clear_bit,
    inside,
    invariant,
    local_bh_disable,
    local_bh_enable,
    smp_mb__after_atomic,
    softirq,
    spin_lock,
    spin_unlock,
)
from qmodel.specs.requeue import Head, QdiscState


class QdiscState2(Bits):
    """Bits of qdisc->state2, which only the holder of the root lock touches."""

    RUNNING = 0


class Running(Head):
    """Who owns a locked qdisc between dequeue and transmit."""

    model = "running"
    packets = Packets(1, each=Head.cpus, doc="packets that each CPU sends")

    @invariant("mutex")
    def one_owner(m):
        """At most one thread is between dequeue and transmit."""
        return inside(m.qdisc_restart, m.qdisc_bypass) <= 1

    def qdisc_run_begin(m): ...


class RunningBool(Running):
    """A bool, under the root lock."""

    name = "bool"
    kernel = Kernel("526f5fb112f7", since="6.19", source="include/net/sch_generic.h")

    def qdisc_run_begin(m):
        if m.running:
            return False
        m.running = True
        return True

    expect = [
        Holds(busy=0, memory=("sc", "tso", "weak")),
        Holds(busy=0, fills=1, wakes=1, packets=(2, 1)),
        Holds(busy=1, stop=True, wakes=2, memory=("sc", "tso")),
        Refutes("stuck", busy=1, stop=True, wakes=2, memory="weak"),
    ]


class RunningBoolBarrier(RunningBool):
    """The same, with a barrier after clear_bit(SCHED): a hypothesis, no patch."""

    name = "bool-barrier"
    kernel = Kernel()

    @softirq
    def net_tx_action(m, cpu):
        spin_lock(m.root_lock)
        clear_bit(QdiscState.SCHED, m.state)
        smp_mb__after_atomic()
        m.qdisc_run()
        spin_unlock(m.root_lock)

    expect = [
        Holds(busy=0, memory=("sc", "tso", "weak")),
        Holds(busy=1, stop=True, wakes=2, memory=("sc", "tso", "weak")),
    ]


class State2Bit(Running):
    """A bit of state2, under the root lock."""

    kernel = Kernel("97604c65bcda", since="5.16", until="6.18", source="include/net/sch_generic.h")

    state2 = Flags(QdiscState2, guarded_by=Head.root_lock, doc="q->state2")

    def qdisc_run_begin(m):
        if m.state2 & BIT(QdiscState2.RUNNING):
            return False
        __set_bit(QdiscState2.RUNNING, m.state2)
        return True

    def qdisc_run_end(m):
        __clear_bit(QdiscState2.RUNNING, m.state2)

    expect = [
        Holds(busy=0, memory=("sc", "tso", "weak")),
        Holds(busy=1, stop=True, wakes=2, memory=("sc", "tso")),
    ]


class Inverted(State2Bit):
    """The test is the wrong way round: true where somebody runs already."""

    kernel = Kernel("29cbcd858283", since="5.16-rc1", until="5.16-rc1", source="include/net/sch_generic.h")

    def qdisc_run_begin(m):
        was = m.state2 & BIT(QdiscState2.RUNNING)
        __set_bit(QdiscState2.RUNNING, m.state2)
        return was != 0

    expect = [
        Refutes("stuck", cpus=1, busy=0, bypass=False),
        Holds(cpus=1, busy=0),
        Refutes("mutex", cpus=2, busy=0),
    ]


class EndAfterUnlock(RunningBool):
    """A mutant: running is cleared when the root lock is released already."""

    kernel = Kernel()

    def qdisc_run_begin(m):
        if READ_ONCE(m.running):
            return False
        m.running = True
        return True

    def __dev_xmit_skb(m, skb):
        local_bh_disable()
        spin_lock(m.root_lock)
        __skb_queue_tail(m.child, skb)
        m.qlen += 1
        m.run_and_unlock()
        local_bh_enable()

    def run_and_unlock(m):
        begun = m.qdisc_run_begin()
        if begun:
            m.__qdisc_run()
        spin_unlock(m.root_lock)
        if begun:
            WRITE_ONCE(m.running, False)

    @softirq
    def net_tx_action(m, cpu):
        spin_lock(m.root_lock)
        clear_bit(QdiscState.SCHED, m.state)
        m.run_and_unlock()

    expect = [Refutes("stuck", busy=0), Refutes("stuck", busy=1)]


class BeginWithoutLock(RunningBool):
    """A mutant: running is tested and set before the root lock is taken."""

    kernel = Kernel()

    def __dev_xmit_skb(m, skb):
        local_bh_disable()
        begun = m.begin_early()
        spin_lock(m.root_lock)
        __skb_queue_tail(m.child, skb)
        m.qlen += 1
        if begun:
            m.__qdisc_run()
            m.qdisc_run_end()
        spin_unlock(m.root_lock)
        local_bh_enable()

    def begin_early(m):
        if READ_ONCE(m.running):
            return False
        WRITE_ONCE(m.running, True)
        return True

    expect = [Refutes("mutex", "stuck", busy=0)]


__all__ = [
    "BeginWithoutLock", "EndAfterUnlock", "Inverted", "Running", "RunningBool", "RunningBoolBarrier", "State2Bit",
]  # fmt: skip
