"""include/net/sch_generic.h: qdisc_run_begin() and qdisc_run_end() of locked qdiscs.

Whoever sets `running` owns the queue between dequeue and transmit, where the root lock is not held. Everything else is
as in requeue, with the chain put back in front.
"""

from qmodel.lang import (
    Bits,
    Flags,
    Holds,
    Kernel,
    Refutes,
    __clear_bit,
    __set_bit,
    clear_bit,
    environment,
    inside,
    invariant,
    local_bh_disable,
    local_bh_enable,
    smp_mb__after_atomic,
    softirq,
    spin_lock,
    spin_unlock,
    test_and_clear_bit,
    test_bit,
)
from qmodel.specs.requeue import Head, QdiscState, TxqState


class QdiscState2(Bits):
    """Bits of qdisc->state2, which only the holder of the root lock touches."""

    RUNNING = 0


class Bool(Head):
    """A bool under the root lock."""

    model = "running"
    kernel = Kernel("526f5fb112f7", since="6.19", source="include/net/sch_generic.h")
    packets = 1

    @invariant("mutex")
    def one_owner(m):
        """At most one thread is between dequeue and transmit."""
        return inside(m.__qdisc_run) + inside(m.bypass_qdisc) <= 1
