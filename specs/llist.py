"""net/core/dev.c: __dev_xmit_skb() with q->defer_list (100dfa74cad9, v6.19).

A sender puts its packet on a lock-less list. Who finds the list empty takes the root lock and enqueues what has come
meanwhile; the others are done. defer_count shall stop the list from growing past q->limit, but it is set to 0 while
senders still remember what they got from it.

Below the root lock all is as in requeue, with the chain put back in front.
"""

from qmodel.lang import (
    READ_ONCE,
    Budget,
    Holds,
    Int,
    Kernel,
    Packets,
    Param,
    Refutes,
    SkbList,
    SkbQueue,
    SpinLock,
    __clear_bit,
    __skb_dequeue,
    __skb_queue_tail,
    atomic_inc_return,
    atomic_set,
    check,
    clear_bit,
    demand,
    environment,
    inside,
    invariant,
    kfree_skb,
    llist_del_all,
    llist_empty,
    llist_reverse_order,
    local_bh_disable,
    local_bh_enable,
    measure,
    quiescent,
    raise_softirq,
    scenario,
    set_bit,
    skb_queue_len,
    smp_mb__after_atomic,
    softirq,
    spin_lock,
    spin_unlock,
    test_and_set_bit,
    test_bit,
    try_cmpxchg,
)
from qmodel.specs.requeue import Head, QdiscState, TxqState

NET_XMIT_SUCCESS = 0
NET_XMIT_DROP = 1


class Llist(Head):
    """How senders hand their packets to a locked qdisc."""

    model = "llist"
    packets = Packets(1, each=Head.cpus, doc="packets that each CPU sends")
    busy = Budget(0, doc="how often the driver may answer NETDEV_TX_BUSY")

    @invariant("mutex")
    def one_owner(m):
        """At most one thread is between dequeue and transmit."""
        return inside(m.qdisc_restart, m.qdisc_bypass) <= 1

    @scenario("stopped", cpus=2, packets=1)
    def the_queue_is_stopped(m):
        """The queue is stopped already."""
        set_bit(TxqState.XOFF, m.txq_state)

    def __dev_xmit_skb(m, skb): ...


class Busylock(Llist):
    """Before the list: who sees the qdisc running waits for a second lock first."""

    kernel = Kernel("79640a4ca695", since="2.6.36", until="6.18", source="net/core/dev.c")

    busylock = SpinLock(doc="q->busylock")

    def __dev_xmit_skb(m, skb):
        local_bh_disable()
        contended = READ_ONCE(m.running)
        if contended:
            spin_lock(m.busylock)
        spin_lock(m.root_lock)
        if m.bypass and not m.qlen and m.qdisc_run_begin():
            batch = SkbQueue()
            __skb_queue_tail(batch, skb)
            if m.sch_direct_xmit(batch):
                if contended:
                    spin_unlock(m.busylock)
                    contended = False
                m.__qdisc_run()
            m.qdisc_run_end()
        else:
            __skb_queue_tail(m.child, skb)
            m.qlen += 1
            if m.qdisc_run_begin():
                if contended:
                    spin_unlock(m.busylock)
                    contended = False
                m.__qdisc_run()
                m.qdisc_run_end()
        spin_unlock(m.root_lock)
        if contended:
            spin_unlock(m.busylock)
        local_bh_enable()

    @invariant("mutex")
    def one_owner(m):
        """At most one thread is between dequeue and transmit."""
        return inside(m.qdisc_restart, m.sch_direct_xmit) <= 1

    expect = [
        Holds(),
        Holds(packets=2),
        Holds(packets=(2, 1), busy=2),
    ]


class V2(Llist):
    """The list, with a count of those who wait on it."""

    kernel = Kernel("100dfa74cad9", since="6.19", source="net/core/dev.c")

    limit = Param(1, doc="q->limit")
    pfifo = Param(False, doc="the child queue drops what goes over q->limit")
    defer_list = SkbList(doc="q->defer_list")
    defer_count = Int(0, high=32, doc="q->defer_count")

    def __dev_xmit_skb(m, skb):
        local_bh_disable()
        m.send(skb)
        local_bh_enable()

    def send(m, skb):
        first = READ_ONCE(m.defer_list.first)
        defer_count = 0
        while True:
            if first is not None and not defer_count:
                defer_count = atomic_inc_return(m.defer_count)
                if defer_count > m.drop_above():
                    demand("early-drop", skb_queue_len(m.child) + skb_queue_len(m.defer_list) >= m.room())
                    kfree_skb(skb)
                    return NET_XMIT_DROP
            if try_cmpxchg(m.defer_list.first, first, skb):
                break
        if first is not None:
            return NET_XMIT_SUCCESS
        spin_lock(m.root_lock)
        batch = llist_del_all(m.defer_list)
        atomic_set(m.defer_count, 0)
        check(len(batch) > 0, "the list is not empty for the one who found it so")
        batch = llist_reverse_order(batch)
        single = len(batch) == 1
        rc = NET_XMIT_SUCCESS
        if single and m.bypass and not m.qlen and m.qdisc_run_begin():
            m.qdisc_bypass(__skb_dequeue(batch))
        else:
            while batch:
                rc = m.enqueue(__skb_dequeue(batch), single)
            m.qdisc_run()
        spin_unlock(m.root_lock)
        return rc if single else NET_XMIT_SUCCESS

    def enqueue(m, skb, single):
        if m.pfifo and skb_queue_len(m.child) >= m.limit:
            demand("return-code", m.told_of_drop(single))
            kfree_skb(skb)
            return NET_XMIT_DROP
        __skb_queue_tail(m.child, skb)
        m.qlen += 1
        return NET_XMIT_SUCCESS

    def told_of_drop(m, single):
        return single

    def drop_above(m):
        return m.limit

    def room(m):
        return m.limit

    @invariant("limit")
    def the_list_keeps_its_limit(m):
        """The source says that the list may grow a little over q->limit: here by one."""
        return len(m.defer_list) <= m.limit + 1

    @measure("defer_list")
    def longest(m):
        """How long the list ever is."""
        return len(m.defer_list)

    @quiescent("list-empty")
    def nobody_is_left_on_the_list(m):
        """When everything has come to rest the list is empty."""
        return llist_empty(m.defer_list)

    expect = [
        Holds(),
        Refutes("limit", "early-drop", packets=2),
        Refutes("return-code", pfifo=True, bypass=False),
        Holds(packets=(2, 1), busy=2, limit=4),
        Holds(fills=1, wakes=1),
    ]


class V1RcSuccess(V2):
    """The first version on the list told every sender SUCCESS, whatever became of its packet."""

    kernel = Kernel(source="net/core/dev.c")

    def told_of_drop(m, single):
        return False

    expect = [Refutes("return-code", cpus=1, pfifo=True, limit=0, bypass=False)]


class V2Htb(V2):
    """The same with a qdisc that never sets q->limit, as HTB and ten others."""

    limit = Param(0, doc="q->limit")

    def room(m):
        return 16

    expect = [Refutes("early-drop")]


class MaxBurst(V2Htb):
    """The count is held against net.core.qdisc_max_burst, not against q->limit."""

    kernel = Kernel("ffe4ccd359d0", since="6.19", source="net/core/dev.c")

    max_burst = Param(4, doc="net.core.qdisc_max_burst")

    def drop_above(m):
        return m.max_burst

    @invariant("limit")
    def the_list_keeps_its_limit(m):
        """The list may grow over max_burst by one."""
        return len(m.defer_list) <= m.max_burst + 1

    expect = [
        Holds(),
        Holds(packets=2),
        Refutes("early-drop", "limit", packets=2, max_burst=1),
    ]


class V2Tail(V2):
    """The list, with packets requeued at the tail as before October 2026."""

    def dev_requeue_skb(m, batch):
        while batch:
            skb = __skb_dequeue(batch)
            __skb_queue_tail(m.gso_skb, skb)
            m.qlen += 1

    expect = [Refutes("order", packets=(2, 1), busy=2, limit=4)]


class ScheduleFastPath(V2):
    """__netif_schedule() does nothing where somebody is on the list: he will run the queue."""

    kernel = Kernel("f8a55d5e71e6", since="6.19", source="net/core/dev.c")

    def __netif_schedule(m):
        if not llist_empty(m.defer_list):
            return
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            raise_softirq(m.net_tx_action)

    expect = [
        Holds(scenario="stopped", wakes=1, memory=("sc", "tso")),
        Refutes("stuck", scenario="stopped", wakes=1, memory="weak"),
    ]


class FastPathBarrier(ScheduleFastPath):
    """The same, with a barrier after clear_bit(SCHED): a hypothesis, no patch."""

    kernel = Kernel()

    @softirq
    def net_tx_action(m, cpu):
        spin_lock(m.root_lock)
        clear_bit(QdiscState.SCHED, m.state)
        smp_mb__after_atomic()
        m.qdisc_run()
        spin_unlock(m.root_lock)

    expect = [Holds(scenario="stopped", wakes=1, memory=("sc", "tso", "weak"))]


class PlainClear(ScheduleFastPath):
    """A mutant: the driver clears XOFF by a plain store."""

    kernel = Kernel()

    @environment(budget=Head.wakes)
    def netif_tx_wake_queue(m):
        if test_bit(TxqState.XOFF, m.txq_state):
            __clear_bit(TxqState.XOFF, m.txq_state)
            m.__netif_schedule()

    expect = [
        Holds(scenario="stopped", wakes=1),
        Refutes("stuck", scenario="stopped", wakes=1, memory="tso"),
    ]


class SkipIfRunning(V2):
    """A mutant: __netif_schedule() does nothing where somebody runs the queue."""

    kernel = Kernel()

    def __netif_schedule(m):
        if READ_ONCE(m.running):
            return
        if not test_and_set_bit(QdiscState.SCHED, m.state):
            raise_softirq(m.net_tx_action)

    expect = [Refutes("stuck", scenario="stopped", cpus=1, wakes=1)]
