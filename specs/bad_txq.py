"""net/sched/sch_generic.c: a qdisc above two transmit queues, and the packet that does not fit into a chain.

When a chain of packets is dequeued for one transmit queue, the first packet of another queue ends it and waits in
bad_txq. The variants differ in what happens while the queue of that packet is stopped.

Packets of flow a go to queue 0, those of flow b to queue 1. A locked qdisc; the driver is never busy.
"""

from qmodel.lang import (
    Array,
    Bits,
    Budget,
    Flags,
    Holds,
    Kernel,
    Packets,
    Refutes,
    SkbList,
    SkbQueue,
    SpinLock,
    __skb_dequeue,
    __skb_queue_tail,
    clear_bit,
    environment,
    invariant,
    quiescent,
    raise_softirq,
    scenario,
    set_bit,
    skb_peek,
    skb_queue_empty,
    spin_lock,
    spin_lock_bh,
    spin_unlock,
    spin_unlock_bh,
    test_and_clear_bit,
    transmit,
)
from qmodel.specs.requeue import Head, QdiscState


class TxqState(Bits):
    """Bits of netdev_queue->state."""

    XOFF = 0
    FROZEN = 1


class BadTxq(Head):
    """What to do while the queue of bad_txq's first packet is stopped."""

    model = "bad-txq"
    packets = Packets(1, each=Head.cpus, doc="packets that each CPU sends; those of CPU1 go to queue 1")
    busy = Budget(0, doc="unused here: the driver is never busy")
    wakes = Budget(1, doc="how often the driver may wake queue 1")

    bad_txq = SkbList(guarded_by=Head.root_lock, doc="packets that did not fit into a chain")
    # Two of each, where the model that this derives from has one.
    txq_state = Array(Flags(TxqState, rest=0), size=2)  # type: ignore[assignment]
    tx_lock = Array(SpinLock(), size=2)  # type: ignore[assignment]

    def stopped(m, skb):
        return m.txq_state[skb.flow] != 0

    def dequeue_skb(m):
        batch = SkbQueue()
        skb = skb_peek(m.gso_skb)
        if skb is not None:
            if not m.stopped(skb):
                __skb_queue_tail(batch, __skb_dequeue(m.gso_skb))
                m.qlen -= 1
            return batch
        skb = skb_peek(m.bad_txq)
        if skb is not None:
            if not m.stopped(skb):
                skb = __skb_dequeue(m.bad_txq)
                m.qlen -= 1
                m.try_bulk_dequeue_skb_slow(batch, skb)
                return batch
            if m.stopped_bad_txq_ends_dequeue():
                return batch
        skb = __skb_dequeue(m.child)
        if skb is not None:
            m.qlen -= 1
            m.try_bulk_dequeue_skb_slow(batch, skb)
        return batch

    def stopped_bad_txq_ends_dequeue(m): ...

    def try_bulk_dequeue_skb_slow(m, batch, skb):
        queue = skb.flow
        while skb is not None:
            if skb.flow != queue:
                __skb_queue_tail(m.bad_txq, skb)
                m.qlen += 1
                return
            __skb_queue_tail(batch, skb)
            skb = __skb_dequeue(m.child)
            if skb is not None:
                m.qlen -= 1

    def sch_direct_xmit(m, batch):
        first = skb_peek(batch)
        queue = first.flow if first is not None else 0
        spin_unlock(m.root_lock)
        spin_lock(m.tx_lock[queue])
        if not m.txq_state[queue]:
            while batch:
                transmit(__skb_dequeue(batch))
        spin_unlock(m.tx_lock[queue])
        spin_lock(m.root_lock)
        if batch:
            m.dev_requeue_skb(batch)
            m.__netif_schedule()
            return False
        return True

    @environment(budget=wakes)
    def netif_tx_wake_queue(m):
        if test_and_clear_bit(TxqState.XOFF, m.txq_state[1]):
            m.__netif_schedule()

    @environment(budget=Head.freezes)
    def netif_freeze_queues(m):
        spin_lock_bh(m.tx_lock[1])
        set_bit(TxqState.FROZEN, m.txq_state[1])
        spin_unlock_bh(m.tx_lock[1])
        clear_bit(TxqState.FROZEN, m.txq_state[1])
        m.__netif_schedule()

    @invariant("qlen")
    def qlen_counts_what_is_held(m):
        """q->q.qlen equals the packets that the qdisc really holds, whenever nobody has the root lock."""
        return m.qlen == len(m.child) + len(m.gso_skb) + len(m.bad_txq)

    @quiescent("stuck")
    def nothing_is_left_behind(m):
        """When everything has come to rest no packet waits for a next one to push it."""
        return skb_queue_empty(m.child) and skb_queue_empty(m.gso_skb) and skb_queue_empty(m.bad_txq)

    def start(m):
        set_bit(TxqState.XOFF, m.txq_state[1])
        set_bit(QdiscState.SCHED, m.state)
        raise_softirq(m.net_tx_action)

    @scenario("a0 b0 b1", cpus=2, packets=0)
    def a_then_two_of_b(m):
        """a0, b0 and b1 are queued, queue 1 is stopped, the qdisc is scheduled on CPU0."""
        __skb_queue_tail(m.child, m.parked(0))
        __skb_queue_tail(m.child, m.parked(1))
        __skb_queue_tail(m.child, m.parked(1))
        m.qlen = 3
        m.start()

    @scenario("b0 b1", cpus=2, packets=0)
    def two_of_b(m):
        """b0 and b1 are queued, queue 1 is stopped, the qdisc is scheduled on CPU0."""
        __skb_queue_tail(m.child, m.parked(1))
        __skb_queue_tail(m.child, m.parked(1))
        m.qlen = 2
        m.start()

    @scenario("a0 b0", cpus=2, packets=0)
    def one_of_each(m):
        """a0 and b0 are queued, queue 1 is stopped, the qdisc is scheduled on CPU0."""
        __skb_queue_tail(m.child, m.parked(0))
        __skb_queue_tail(m.child, m.parked(1))
        m.qlen = 2
        m.start()


class BadTxqBlocks(BadTxq):
    """A stopped first packet blocks the queue: one pointer, up to 4.15."""

    kernel = Kernel("a53851e2c321", until="4.16-rc1", source="net/sched/sch_generic.c")

    def stopped_bad_txq_ends_dequeue(m):
        return True

    expect = [Holds(scenario="a0 b0 b1"), Holds(scenario="b0 b1"), Holds(scenario="a0 b0"), Holds(wakes=0)]


class BadTxqFallsThrough(BadTxq):
    """A stopped first packet is passed over, and the child queue is asked."""

    kernel = Kernel(since="4.16", until="5.2", source="net/sched/sch_generic.c")

    def stopped_bad_txq_ends_dequeue(m):
        return False

    expect = [Refutes("order", scenario="a0 b0 b1"), Holds(scenario="b0 b1"), Holds(scenario="a0 b0")]


class BadTxqSentinel(BadTxqBlocks):
    """A stopped first packet ends the dequeue: SKB_XOFF_MAGIC."""

    kernel = Kernel("b88dd52c62bb", since="5.3", source="net/sched/sch_generic.c")

    def stopped_bad_txq_ends_dequeue(m):
        return True

    expect = [Holds(scenario="a0 b0 b1"), Holds(scenario="b0 b1"), Holds(scenario="a0 b0")]
