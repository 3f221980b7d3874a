"""An idea from the discussion of v6.19, never written as a patch: net_tx_action() without the root lock.

`running` becomes a sequence number, odd while somebody runs the queue. Who restarts a queue stores a snapshot of it;
net_tx_action() compares, and need not take the root lock where a run has happened since. Three rules for when to
store the snapshot and when to skip. All else is as in requeue, with the chain put back in front.
"""

from qmodel.lang import (
    READ_ONCE,
    WRITE_ONCE,
    Budget,
    Holds,
    Int,
    Packets,
    Param,
    Refutes,
    clear_bit,
    inside,
    invariant,
    raise_softirq,
    smp_mb,
    smp_mb__after_atomic,
    softirq,
    spin_lock,
    spin_unlock,
    test_and_set_bit,
)
from qmodel.specs.requeue import Head, QdiscState


class RestartSeq(Head):
    """When net_tx_action() may leave the queue to a run that has happened since it was restarted."""

    model = "restart-seq"
    packets = Packets(1, each=Head.cpus, doc="packets that each CPU sends")
    busy = Budget(1, doc="how often the driver may answer NETDEV_TX_BUSY")
    stop = Param(True, doc="a busy driver also stops the queue (XOFF)")
    wakes = Budget(1, doc="how often the driver may wake the queue")

    seq = Int(0, high=63, guarded_by=Head.root_lock, doc="twice the number of runs, odd while one goes on")
    snapshot = Int(0, high=63, doc="seq when the queue was restarted last")

    @invariant("mutex")
    def one_owner(m):
        """At most one thread is between dequeue and transmit."""
        return inside(m.qdisc_restart, m.qdisc_bypass) <= 1

    def qdisc_run_begin(m):
        if m.seq % 2 == 1:
            return False
        m.seq += 1
        return True

    def qdisc_run_end(m):
        m.seq += 1

    def __netif_schedule(m): ...

    def has_run(m, now, then): ...

    @softirq
    def net_tx_action(m, cpu):
        clear_bit(QdiscState.SCHED, m.state)
        smp_mb__after_atomic()
        then = READ_ONCE(m.snapshot)
        now = READ_ONCE(m.seq)
        if not m.has_run(now, then):
            spin_lock(m.root_lock)
            m.qdisc_run()
            spin_unlock(m.root_lock)


class Differs(RestartSeq):
    """Always store the snapshot, and skip where the number differs from it."""

    def __netif_schedule(m):
        WRITE_ONCE(m.snapshot, READ_ONCE(m.seq))
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            raise_softirq(m.net_tx_action)

    def has_run(m, now, then):
        return now != then

    expect = [Refutes("stuck", memory=("sc", "tso"))]


class NewlySet(RestartSeq):
    """Store the snapshot only where SCHED was newly set, and skip where a run began after it."""

    def __netif_schedule(m):
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            WRITE_ONCE(m.snapshot, READ_ONCE(m.seq))
            raise_softirq(m.net_tx_action)

    def has_run(m, now, then):
        return (now + 1) // 2 > (then + 1) // 2

    expect = [Refutes("stuck", memory=("sc", "tso"))]


class BeganAfter(RestartSeq):
    """Always store the snapshot before SCHED is set, and skip only where a run began after it."""

    def __netif_schedule(m):
        WRITE_ONCE(m.snapshot, READ_ONCE(m.seq))
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            raise_softirq(m.net_tx_action)

    def has_run(m, now, then):
        return (now + 1) // 2 > (then + 1) // 2

    expect = [
        Holds(),
        Refutes("stuck", memory=("tso", "weak")),
    ]


class BeganAfterMb(BeganAfter):
    """The same, with a full barrier after a run has begun, before it looks at the queue."""

    def qdisc_run_begin(m):
        if m.seq % 2 == 1:
            return False
        m.seq += 1
        smp_mb()
        return True

    expect = [Holds(memory=("sc", "tso", "weak")), Holds(busy=0, fills=1, packets=(2, 1))]
