"""TCQ_F_NOLOCK (pfifo_fast): senders that find the queue owned leave, and must be heard all the same.

include/net/sch_generic.h (qdisc_run_begin, qdisc_run_end), net/sched/sch_generic.c (pfifo_fast, dequeue_skb),
net/core/dev.c (__dev_xmit_skb, net_tx_action). A sender puts its packet into a ring and tries `seqlock`. Who has it
empties the ring. A sender that does not get it says so in MISSED. Every version had a way to lose that word.

One band, one transmit queue; the ring has room for every packet; counters are left out.
"""

from qmodel.lang import (
    BIT,
    READ_ONCE,
    WRITE_ONCE,
    Array,
    Bits,
    Budget,
    Flags,
    Holds,
    Int,
    Kernel,
    Model,
    Packets,
    Param,
    Refutes,
    SkbList,
    SkbPtr,
    SkbQueue,
    SpinLock,
    __skb_dequeue,
    __skb_queue_tail,
    choose,
    clear_bit,
    environment,
    local_bh_disable,
    local_bh_enable,
    quiescent,
    raise_softirq,
    scenario,
    set_bit,
    skb_queue_empty,
    skb_queue_empty_lockless,
    skb_queue_splice_init,
    smp_mb,
    smp_mb__after_atomic,
    smp_mb__before_atomic,
    smp_wmb,
    softirq,
    spin_lock,
    spin_trylock,
    spin_unlock,
    test_and_clear_bit,
    test_and_set_bit,
    test_bit,
    thread,
    transmit,
)


class QdiscState(Bits):
    """Bits of qdisc->state: one word, one location."""

    SCHED = 0
    MISSED = 1
    DRAINING = 2


class TxqState(Bits):
    """Bits of netdev_queue->state."""

    XOFF = 0


NETDEV_TX_OK = 0
NETDEV_TX_BUSY = 1


class Nolock(Model):
    """A lockless qdisc: nobody waits, so somebody must come back."""

    cpus = Param(2, low=1, high=8, grows=True, doc="CPUs that send")
    packets = Packets(1, each=cpus, doc="packets that each CPU sends")
    busy = Budget(0, doc="how often the driver may answer NETDEV_TX_BUSY")
    stop = Param(False, doc="a busy driver also stops the queue (XOFF)")
    wakes = Budget(0, doc="how often the driver may wake the queue")

    seqlock = SpinLock(doc="q->seqlock: the owner")
    q_lock = SpinLock(doc="qdisc_lock(), around gso_skb only")
    producer_lock = SpinLock(doc="ptr_ring->producer_lock")
    ring = Array(SkbPtr(), size=packets.total)
    producer = Int(0, high=packets.total, guarded_by=producer_lock, doc="ptr_ring->producer")
    consumer = Int(0, high=packets.total, guarded_by=seqlock, doc="ptr_ring->consumer_head")
    gso_skb = SkbList(guarded_by=q_lock, doc="packets that the driver refused")
    state = Flags(QdiscState, doc="q->state")
    txq_state = Flags(TxqState, rest=0, doc="netdev_queue->state")

    # --- sending ----------------------------------------------------------------------------------------------------

    @thread(each=cpus)
    def dev_queue_xmit(m, cpu):
        for skb in m.flow(cpu):
            local_bh_disable()
            m.__dev_xmit_skb(skb)
            local_bh_enable()

    def __dev_xmit_skb(m, skb):
        m.pfifo_fast_enqueue(skb)
        m.qdisc_run()

    def pfifo_fast_enqueue(m, skb):
        spin_lock(m.producer_lock)
        i = m.producer
        smp_wmb()
        WRITE_ONCE(m.ring[i], skb)
        m.producer = i + 1
        spin_unlock(m.producer_lock)

    # --- running ----------------------------------------------------------------------------------------------------

    def qdisc_run(m):
        if m.qdisc_run_begin():
            m.__qdisc_run()
            m.qdisc_run_end()

    def qdisc_run_begin(m): ...

    def qdisc_run_end(m): ...

    def __qdisc_run(m):
        while m.qdisc_restart():
            pass

    def qdisc_restart(m):
        skb = m.dequeue_skb()
        if skb is None:
            return False
        return m.sch_direct_xmit(skb)

    def dequeue_skb(m):
        if not skb_queue_empty_lockless(m.gso_skb):
            spin_lock(m.q_lock)
            if not skb_queue_empty(m.gso_skb):
                skb = None
                if m.netif_xmit_stopped():
                    m.qdisc_maybe_clear_missed()
                else:
                    skb = __skb_dequeue(m.gso_skb)
                spin_unlock(m.q_lock)
                return skb
            spin_unlock(m.q_lock)
        if m.netif_xmit_stopped():
            m.qdisc_maybe_clear_missed()
            return None
        return m.pfifo_fast_dequeue()

    def pfifo_fast_dequeue(m):
        return m.skb_array_consume()

    def skb_array_consume(m):
        i = m.consumer
        if i == len(m.ring):
            return None
        skb = READ_ONCE(m.ring[i])
        if skb is not None:
            WRITE_ONCE(m.ring[i], None)
            m.consumer = i + 1
        return skb

    def sch_direct_xmit(m, skb):
        if m.netif_xmit_stopped():
            m.qdisc_maybe_clear_missed()
        elif m.ndo_start_xmit(skb) == NETDEV_TX_OK:
            return True
        m.dev_requeue_skb(skb)
        return False

    def dev_requeue_skb(m, skb):
        batch = SkbQueue()
        __skb_queue_tail(batch, skb)
        spin_lock(m.q_lock)
        skb_queue_splice_init(batch, m.gso_skb)
        spin_unlock(m.q_lock)
        m.after_requeue()

    def after_requeue(m):
        m.__netif_schedule()

    def qdisc_maybe_clear_missed(m):
        pass

    # --- the driver -------------------------------------------------------------------------------------------------

    def ndo_start_xmit(m, skb):
        if choose(m.busy, "ndo_start_xmit() = NETDEV_TX_BUSY"):
            if m.stop:
                set_bit(TxqState.XOFF, m.txq_state)
            return NETDEV_TX_BUSY
        transmit(skb)
        return NETDEV_TX_OK

    def netif_xmit_stopped(m):
        return test_bit(TxqState.XOFF, m.txq_state)

    @environment(budget=wakes)
    def netif_tx_wake_queue(m):
        if test_and_clear_bit(TxqState.XOFF, m.txq_state):
            m.__netif_schedule()

    # --- the softirq ------------------------------------------------------------------------------------------------

    def __netif_schedule(m):
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            raise_softirq(m.net_tx_action)

    @softirq
    def net_tx_action(m, cpu):
        smp_mb__before_atomic()
        clear_bit(QdiscState.SCHED, m.state)
        m.after_clear_sched()
        m.qdisc_run()

    def after_clear_sched(m):
        pass

    # --- what must hold ---------------------------------------------------------------------------------------------

    @quiescent("stuck")
    def nothing_is_left_behind(m):
        """When everything has come to rest no packet waits for a next one to push it."""
        return skb_queue_empty(m.gso_skb) and all(m.ring[i] is None for i in range(len(m.ring)))

    @scenario("requeued", cpus=1, packets=1)
    def a0_a1_are_requeued(m):
        """a0 and a1 were refused before, and MISSED says so; CPU0 sends a2."""
        __skb_queue_tail(m.gso_skb, m.parked(0))
        __skb_queue_tail(m.gso_skb, m.parked(0))
        set_bit(QdiscState.MISSED, m.state)


class NoExclusion(Nolock):
    """Everybody who enqueues also dequeues; the ring has a consumer lock, the wire has none."""

    kernel = Kernel("c5ad119fb6c0", since="4.16", until="4.17", source="net/sched/sch_generic.c")

    consumer_lock = SpinLock(doc="ptr_ring->consumer_lock")
    consumer = Int(0, high=Nolock.packets.total, guarded_by=consumer_lock)

    def qdisc_run_begin(m):
        return True

    def qdisc_run_end(m):
        pass

    def pfifo_fast_dequeue(m):
        spin_lock(m.consumer_lock)
        skb = m.skb_array_consume()
        spin_unlock(m.consumer_lock)
        return skb

    expect = [Refutes("order", packets=(2, 1)), Refutes("order", packets=(2, 1), busy=1)]


class Seqlock(Nolock):
    """The owner is who gets seqlock; who does not get it leaves."""

    kernel = Kernel("96009c7d500e", since="4.18", until="5.12", source="include/net/sch_generic.h")

    def qdisc_run_begin(m):
        return spin_trylock(m.seqlock)

    def qdisc_run_end(m):
        spin_unlock(m.seqlock)

    expect = [
        Refutes("stuck", memory=("sc", "tso", "weak")),
        Refutes("stuck", packets=(2, 1), memory=("sc", "tso")),
    ]


class Missed(Seqlock):
    """Who does not get seqlock sets MISSED and tries once more; the owner looks at it at the end."""

    kernel = Kernel("a90c57f2cedd", since="5.13-rc", source="include/net/sch_generic.h")

    def qdisc_run_begin(m):
        if spin_trylock(m.seqlock):
            return True
        if test_bit(QdiscState.MISSED, m.state):
            return False
        set_bit(QdiscState.MISSED, m.state)
        return spin_trylock(m.seqlock)

    def qdisc_run_end(m):
        spin_unlock(m.seqlock)
        m.after_unlock()
        if test_bit(QdiscState.MISSED, m.state):
            m.missed_at_end()

    def after_unlock(m):
        pass

    def missed_at_end(m):
        clear_bit(QdiscState.MISSED, m.state)
        m.__netif_schedule()

    def pfifo_fast_dequeue(m):
        skb = m.skb_array_consume()
        if skb is None and m.is_missed():
            m.clear_missed()
            smp_mb__after_atomic()
            skb = m.skb_array_consume()
        return skb

    def is_missed(m):
        return test_bit(QdiscState.MISSED, m.state)

    def clear_missed(m):
        clear_bit(QdiscState.MISSED, m.state)

    def qdisc_maybe_clear_missed(m):
        clear_bit(QdiscState.MISSED, m.state)
        smp_mb__after_atomic()
        if not m.netif_xmit_stopped():
            set_bit(QdiscState.MISSED, m.state)
        else:
            m.still_stopped()

    def still_stopped(m):
        pass

    expect = [
        Holds(),
        Refutes("stuck", memory=("tso", "weak")),
    ]


class MissedBarrier(Missed):
    """With barriers around the test of MISSED and the second try."""

    kernel = Kernel("89837eb4b246", since="5.13-rc", source="include/net/sch_generic.h")

    def qdisc_run_begin(m):
        if spin_trylock(m.seqlock):
            return True
        smp_mb__before_atomic()
        if test_bit(QdiscState.MISSED, m.state):
            return False
        set_bit(QdiscState.MISSED, m.state)
        smp_mb__after_atomic()
        return spin_trylock(m.seqlock)

    expect = [
        Holds(),
        Refutes("stuck", memory=("tso", "weak")),
    ]


class MissedEndMb(MissedBarrier):
    """With a full barrier between the unlock and the look at MISSED."""

    kernel = Kernel("2e8728c955ce", since="5.13", source="include/net/sch_generic.h")

    def after_unlock(m):
        smp_mb()

    expect = [
        Holds(memory=("sc", "tso", "weak")),
        Holds(packets=(1, 2), memory=("sc", "weak")),
        Refutes("stuck", packets=(1, 2), memory="tso"),
    ]


class Bypass(Missed):
    """An empty queue is bypassed; MISSED stays set at the end, and DRAINING says that a stopped queue holds packets."""

    kernel = Kernel("c4fef01ba479", since="5.14", source="net/core/dev.c")

    def __dev_xmit_skb(m, skb):
        if m.nolock_qdisc_is_empty() and m.qdisc_run_begin():
            m.qdisc_bypass(skb)
        else:
            m.pfifo_fast_enqueue(skb)
            m.qdisc_run()

    def qdisc_bypass(m, skb):
        if not m.nolock_qdisc_is_empty():
            m.pfifo_fast_enqueue(skb)
            m.__qdisc_run()
        elif m.sch_direct_xmit(skb) and not m.nolock_qdisc_is_empty():
            m.__qdisc_run()
        m.qdisc_run_end()

    def nolock_qdisc_is_empty(m):
        return not READ_ONCE(m.state) & (BIT(QdiscState.MISSED) | BIT(QdiscState.DRAINING))

    def missed_at_end(m):
        m.__netif_schedule()

    def is_missed(m):
        return not m.nolock_qdisc_is_empty()

    def clear_missed(m):
        clear_bit(QdiscState.MISSED, m.state)
        clear_bit(QdiscState.DRAINING, m.state)

    def still_stopped(m):
        set_bit(QdiscState.DRAINING, m.state)

    def after_requeue(m):
        set_bit(QdiscState.MISSED, m.state)

    expect = [
        Holds(),
        Refutes("stuck", memory=("tso", "weak")),
    ]


class Current(Bypass):
    """With test_and_set_bit in begin and a full barrier in end."""

    kernel = Kernel("2e8728c955ce", since="5.15", source="include/net/sch_generic.h")

    def qdisc_run_begin(m):
        if spin_trylock(m.seqlock):
            return True
        if test_and_set_bit(QdiscState.MISSED, m.state):
            return False
        return spin_trylock(m.seqlock)

    def after_unlock(m):
        smp_mb()

    expect = [
        Holds(memory=("sc", "tso", "weak")),
        Holds(packets=(1, 2), memory=("sc", "tso")),
        Refutes("stuck", packets=(1, 2), memory="weak"),
        Holds(packets=(2, 1), memory=("sc", "tso")),
        Refutes("stuck", packets=(2, 1), memory="weak"),
        Holds(scenario="requeued", busy=1, memory=("sc", "tso", "weak")),
        Holds(cpus=1, busy=2, wakes=3, memory=("sc", "tso", "weak")),
        Holds(cpus=1, busy=2, stop=True, wakes=3, memory=("sc", "tso")),
        Refutes("stuck", cpus=1, busy=1, stop=True, wakes=1, memory="weak"),
    ]


class CurrentTail(Current):
    """The same, with a refused packet put behind those that were refused before, as up to October 2026."""

    kernel = Kernel("9540d977618c", since="4.16", until="6.12.116", source="net/sched/sch_generic.c")

    def dev_requeue_skb(m, skb):
        spin_lock(m.q_lock)
        __skb_queue_tail(m.gso_skb, skb)
        spin_unlock(m.q_lock)
        m.after_requeue()

    expect = [Refutes("order", scenario="requeued", busy=1)]


class CurrentBarrier(Current):
    """The same, with a barrier after clear_bit(SCHED): a hypothesis, no patch."""

    kernel = Kernel()

    def after_clear_sched(m):
        smp_mb__after_atomic()

    expect = [
        Holds(packets=(1, 2), memory=("sc", "tso", "weak")),
        Holds(cpus=1, busy=1, stop=True, wakes=1, memory="weak"),
    ]


class NoSecondTrylock(Current):
    """A mutant: who has set MISSED does not try again."""

    kernel = Kernel()

    def qdisc_run_begin(m):
        if spin_trylock(m.seqlock):
            return True
        test_and_set_bit(QdiscState.MISSED, m.state)
        return False

    expect = [Refutes("stuck")]


class NoRescan(Current):
    """A mutant: MISSED is cleared and the ring is not looked at again."""

    kernel = Kernel()

    def pfifo_fast_dequeue(m):
        skb = m.skb_array_consume()
        if skb is None and m.is_missed():
            m.clear_missed()
        return skb

    expect = [Refutes("stuck")]


class ClearInEnd(Current):
    """A mutant: the end clears MISSED, as before the bypass came."""

    kernel = Kernel()

    def missed_at_end(m):
        clear_bit(QdiscState.MISSED, m.state)
        m.__netif_schedule()

    expect = [Refutes("order", packets=(2, 1))]


class NoSecondLook(Current):
    """A mutant: the bypass does not look again once it has seqlock."""

    kernel = Kernel()

    def qdisc_bypass(m, skb):
        if m.sch_direct_xmit(skb) and not m.nolock_qdisc_is_empty():
            m.__qdisc_run()
        m.qdisc_run_end()

    expect = [Refutes("order", packets=(2, 1), busy=1)]


class UnorderedTest(Current):
    """test_and_set_bit of the generic code before 415d83249709 (6.0): no barrier where the bit is set already."""

    kernel = Kernel(until="5.19", source="include/asm-generic/bitops/atomic.h")

    def qdisc_run_begin(m):
        if spin_trylock(m.seqlock):
            return True
        if test_bit(QdiscState.MISSED, m.state):
            return False
        if test_and_set_bit(QdiscState.MISSED, m.state):
            return False
        return spin_trylock(m.seqlock)

    expect = [Refutes("stuck", memory="weak")]
