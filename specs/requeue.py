"""net/sched/sch_generic.c: what happens to packets that a busy driver refused.

dequeue_skb() takes packets off the queueing discipline, sch_direct_xmit() hands them to the driver without the root
lock, and dev_requeue_skb() puts back what the driver did not take. The variants differ in where they put it.

One transmit queue, a locked qdisc (no TCQ_F_NOLOCK) with a FIFO as its child; times and byte counts are left out.
"""

from qmodel.lang import (
    Bits,
    Bool,
    Budget,
    Flags,
    Holds,
    Int,
    Kernel,
    Model,
    Packets,
    Param,
    Refutes,
    Skb,
    SkbList,
    SkbQueue,
    SpinLock,
    __skb_dequeue,
    __skb_queue_head,
    __skb_queue_tail,
    choose,
    clear_bit,
    environment,
    invariant,
    local_bh_disable,
    local_bh_enable,
    quiescent,
    raise_softirq,
    scenario,
    set_bit,
    skb_queue_empty,
    skb_queue_splice_init,
    skb_queue_splice_tail_init,
    softirq,
    spin_lock,
    spin_lock_bh,
    spin_unlock,
    spin_unlock_bh,
    test_and_clear_bit,
    test_and_set_bit,
    test_bit,
    thread,
    transmit,
)


class QdiscState(Bits):
    """Bits of qdisc->state."""

    SCHED = 0


class TxqState(Bits):
    """Bits of netdev_queue->state."""

    XOFF = 0
    FROZEN = 1


NETDEV_TX_OK = 0
NETDEV_TX_BUSY = 1


class Requeue(Model):
    """Where dev_requeue_skb() puts back what a busy driver refused."""

    cpus = Param(2, low=1, high=8, grows=True, doc="CPUs that send")
    packets = Packets((2, 1), each=cpus, doc="packets that each CPU sends")
    busy = Budget(2, doc="how often the driver may answer NETDEV_TX_BUSY")
    bulk = Param(2, low=1, grows=True, doc="packets of a child queue that are dequeued in one chain")
    bypass = Param(True, doc="an empty qdisc is bypassed (TCQ_F_CAN_BYPASS)")
    stop = Param(False, doc="a busy driver also stops the queue (XOFF)")
    fills = Budget(0, doc="how often the driver may take a packet and stop the queue")
    wakes = Budget(0, doc="how often the driver may wake the queue")
    freezes = Budget(0, doc="how often the queue may be frozen and thawed")

    root_lock = SpinLock(doc="qdisc_lock()")
    tx_lock = SpinLock(doc="netdev_queue->_xmit_lock")
    child = SkbList(guarded_by=root_lock, doc="the qdisc's own queue")
    gso_skb = SkbList(guarded_by=root_lock, doc="packets that the driver refused")
    qlen = Int(0, high=16, guarded_by=root_lock, doc="q->q.qlen: packets that the qdisc holds")
    running = Bool(guarded_by=root_lock, doc="somebody is between dequeue and transmit")
    state = Flags(QdiscState, doc="q->state")
    txq_state = Flags(TxqState, rest=0, doc="netdev_queue->state")

    # --- sending ----------------------------------------------------------------------------------------------------

    @thread(each=cpus)
    def dev_queue_xmit(m, cpu):
        for skb in m.flow(cpu):
            m.__dev_xmit_skb(skb)

    def __dev_xmit_skb(m, skb):
        local_bh_disable()
        spin_lock(m.root_lock)
        if m.bypass and not m.qlen and m.qdisc_run_begin():
            m.qdisc_bypass(skb)
        else:
            __skb_queue_tail(m.child, skb)
            m.qlen += 1
            m.qdisc_run()
        spin_unlock(m.root_lock)
        local_bh_enable()

    def qdisc_bypass(m, skb):
        batch = SkbQueue()
        __skb_queue_tail(batch, skb)
        if m.sch_direct_xmit(batch):
            m.__qdisc_run()
        m.qdisc_run_end()

    # --- running ----------------------------------------------------------------------------------------------------

    def qdisc_run(m):
        if m.qdisc_run_begin():
            m.__qdisc_run()
            m.qdisc_run_end()

    def qdisc_run_begin(m):
        if m.running:
            return False
        m.running = True
        return True

    def qdisc_run_end(m):
        m.running = False

    def __qdisc_run(m):
        while m.qdisc_restart():
            pass

    def qdisc_restart(m):
        batch = m.dequeue_skb()
        if not batch:
            return False
        return m.sch_direct_xmit(batch)

    def dequeue_skb(m):
        batch = SkbQueue()
        if not skb_queue_empty(m.gso_skb):
            if not m.netif_xmit_frozen_or_stopped():
                m.dequeue_gso_skb(batch)
            return batch
        if m.netif_xmit_frozen_or_stopped():
            return batch
        skb = __skb_dequeue(m.child)
        while skb is not None:
            m.qlen -= 1
            __skb_queue_tail(batch, skb)
            if len(batch) == m.bulk:
                break
            skb = __skb_dequeue(m.child)
        return batch

    def dequeue_gso_skb(m, batch):
        skb = __skb_dequeue(m.gso_skb)
        __skb_queue_tail(batch, skb)
        m.qlen -= 1

    def sch_direct_xmit(m, batch):
        spin_unlock(m.root_lock)
        spin_lock(m.tx_lock)
        if not m.netif_xmit_frozen_or_stopped():
            m.dev_hard_start_xmit(batch)
        spin_unlock(m.tx_lock)
        spin_lock(m.root_lock)
        if batch:
            m.dev_requeue_skb(batch)
            m.__netif_schedule()
            return False
        return True

    def dev_hard_start_xmit(m, batch):
        while batch:
            skb = __skb_dequeue(batch)
            if m.ndo_start_xmit(skb) == NETDEV_TX_BUSY:
                __skb_queue_head(batch, skb)
                break
            if batch and m.fills and test_bit(TxqState.XOFF, m.txq_state):
                break

    def dev_requeue_skb(m, batch): ...

    # --- the driver -------------------------------------------------------------------------------------------------

    def ndo_start_xmit(m, skb):
        if choose(m.busy, "ndo_start_xmit() = NETDEV_TX_BUSY"):
            if m.stop:
                set_bit(TxqState.XOFF, m.txq_state)
            return NETDEV_TX_BUSY
        transmit(skb)
        if choose(m.fills, "netif_tx_stop_queue()"):
            set_bit(TxqState.XOFF, m.txq_state)
        return NETDEV_TX_OK

    @environment(budget=wakes)
    def netif_tx_wake_queue(m):
        if test_and_clear_bit(TxqState.XOFF, m.txq_state):
            m.__netif_schedule()

    @environment(budget=freezes)
    def netif_freeze_queues(m):
        spin_lock_bh(m.tx_lock)
        set_bit(TxqState.FROZEN, m.txq_state)
        spin_unlock_bh(m.tx_lock)
        clear_bit(TxqState.FROZEN, m.txq_state)
        m.__netif_schedule()

    def netif_xmit_frozen_or_stopped(m):
        return m.txq_state != 0

    # --- the softirq ------------------------------------------------------------------------------------------------

    def __netif_schedule(m):
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            raise_softirq(m.net_tx_action)

    @softirq
    def net_tx_action(m, cpu):
        spin_lock(m.root_lock)
        clear_bit(QdiscState.SCHED, m.state)
        m.qdisc_run()
        spin_unlock(m.root_lock)

    # --- what must hold ---------------------------------------------------------------------------------------------

    @invariant("qlen")
    def qlen_counts_what_is_held(m):
        """q->q.qlen equals the packets that the qdisc really holds, whenever nobody has the root lock."""
        return m.qlen == len(m.child) + len(m.gso_skb)

    @quiescent("stuck")
    def nothing_is_left_behind(m):
        """When everything has come to rest no packet waits for a next one to push it."""
        return skb_queue_empty(m.child) and skb_queue_empty(m.gso_skb)

    # --- where it starts --------------------------------------------------------------------------------------------

    @scenario("queued", cpus=1, packets=1)
    def a0_is_queued(m):
        """a0 is queued already; CPU0 sends a1."""
        __skb_queue_tail(m.child, m.parked(0))
        m.qlen = 1

    @scenario("requeued", cpus=1, packets=1)
    def a0_a1_are_requeued(m):
        """a0 and a1 were refused before; CPU0 sends a2."""
        __skb_queue_tail(m.gso_skb, m.parked(0))
        __skb_queue_tail(m.gso_skb, m.parked(0))
        m.qlen = 2


class SinglePointer(Requeue):
    """One pointer holds the whole chain, and qlen grows by one for it."""

    kernel = Kernel(since="2.6.28", until="4.15", source="net/sched/sch_generic.c")

    def dequeue_gso_skb(m, batch):
        skb_queue_splice_tail_init(m.gso_skb, batch)
        m.qlen -= 1

    def dev_requeue_skb(m, batch):
        m.gso_skb = batch
        m.qlen += 1

    expect = [
        Refutes("qlen", scenario="queued", busy=1, stop=True),
        Refutes("qlen"),
        Refutes("qlen", cpus=3),
    ]


class FirstOnly(Requeue):
    """Only the first packet of the chain is queued, the rest is lost."""

    kernel = Kernel("a53851e2c321", since="4.16-rc1", source="net/sched/sch_generic.c")

    def dev_requeue_skb(m, batch):
        skb = __skb_dequeue(batch)
        __skb_queue_head(m.gso_skb, skb)
        m.qlen += 1

    expect = [
        Refutes("no-leak", scenario="queued", busy=1),
        Refutes("no-leak"),
        Refutes("no-leak", cpus=3),
    ]


class Tail(Requeue):
    """Every packet of the chain is put behind what was requeued before."""

    kernel = Kernel("9540d977618c", since="4.16", until="6.12.116", source="net/sched/sch_generic.c")

    def dev_requeue_skb(m, batch):
        while batch:
            skb = __skb_dequeue(batch)
            __skb_queue_tail(m.gso_skb, skb)
            m.qlen += 1

    expect = [
        Holds(scenario="queued", busy=1),
        Refutes("order", scenario="queued", busy=2),
        Refutes("order", scenario="requeued", busy=0, freezes=1),
        Holds(busy=1),
        Refutes("order"),
        Holds(packets=2, busy=1),
        Refutes("order", packets=2, busy=2),
        Refutes("order", cpus=3),
    ]


class Head(Requeue):
    """The chain is put back in front, in its order."""

    kernel = Kernel(since="6.12.117", source="net/sched/sch_generic.c")

    def dev_requeue_skb(m, batch):
        n = len(batch)
        skb_queue_splice_init(batch, m.gso_skb)
        m.qlen += n

    expect = [
        Holds(scenario="queued", busy=2),
        Holds(scenario="queued", busy=2, stop=True, wakes=3),
        Holds(scenario="queued", busy=2, fills=1, wakes=1),
        Holds(scenario="requeued", busy=0, freezes=2),
        Holds(),
        Holds(packets=2, busy=2),
        Holds(cpus=3),
    ]


class HeadEach(Requeue):
    """A mutant: each packet of the chain is put in front, one by one, which turns the chain round."""

    def dev_requeue_skb(m, batch):
        while batch:
            skb = __skb_dequeue(batch)
            __skb_queue_head(m.gso_skb, skb)
            m.qlen += 1

    expect = [
        Refutes("order", scenario="queued", busy=1),
        Refutes("order"),
        Refutes("order", cpus=3),
    ]


__all__ = ["FirstOnly", "Head", "HeadEach", "Requeue", "SinglePointer", "Skb", "Tail"]
