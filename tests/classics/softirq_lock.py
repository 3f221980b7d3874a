"""A lock that a task and a softirq share: the reason for spin_lock_bh().

A softirq runs on the CPU that raised it, on top of that CPU's task, which does not go on before the softirq is done. If
the task has the lock that the softirq waits for, neither does.
"""

from qmodel.lang import (
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    SpinLock,
    local_bh_disable,
    local_bh_enable,
    quiescent,
    raise_softirq,
    softirq,
    spin_lock,
    spin_lock_bh,
    spin_unlock,
    spin_unlock_bh,
    thread,
)


class SoftirqLock(Model):
    """Tasks and their softirqs count the same events."""

    cpus = Param(1, low=1, grows=True, doc="CPUs, each with a task")

    lock = SpinLock()
    events = Int(0, high=2 * cpus, guarded_by=lock)

    @thread(each=cpus)
    def task(m, cpu):
        raise_softirq(m.timer)
        m.count_in_task()

    def count_in_task(m): ...

    def count(m):
        m.events += 1

    @softirq
    def timer(m, cpu):
        spin_lock(m.lock)
        m.count()
        spin_unlock(m.lock)

    @quiescent("counted")
    def every_event_is_counted(m):
        """In the end each task and each softirq has been counted."""
        return m.events == 2 * m.cpus


class SpinLockOnly(SoftirqLock):
    """The softirq may come while the task has the lock."""

    name = "spin-lock"

    def count_in_task(m):
        spin_lock(m.lock)
        m.count()
        spin_unlock(m.lock)

    expect = [Refutes("deadlock"), Refutes("deadlock", cpus=2)]


class SpinLockBh(SoftirqLock):
    """The softirq waits until the task has released the lock."""

    def count_in_task(m):
        spin_lock_bh(m.lock)
        m.count()
        spin_unlock_bh(m.lock)

    expect = [Holds(), Holds(cpus=2)]


class EnableTooEarly(SoftirqLock):
    """Bottom halves are on again before the lock is released."""

    def count_in_task(m):
        local_bh_disable()
        spin_lock(m.lock)
        m.count()
        local_bh_enable()
        spin_unlock(m.lock)

    expect = [Refutes("deadlock")]
