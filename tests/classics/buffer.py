"""A bounded buffer: producers wait while it is full, consumers while it is empty.

Who has waited must look again once it has the lock: another may have been faster.
"""

from qmodel.lang import (
    Array,
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    SpinLock,
    check,
    cpu_relax,
    invariant,
    measure,
    spin_lock,
    spin_unlock,
    thread,
    wait_until,
)

EMPTY = 0
ITEM = 1


class Buffer(Model):
    """A ring of slots under a lock, and how many of them are taken."""

    producers = Param(2, low=1, doc="threads that put")
    consumers = Param(1, low=1, doc="threads that take")
    puts = Param(1, low=1, doc="items that each producer puts")
    takes = producers * puts // consumers
    size = Param(1, low=1, doc="slots")

    lock = SpinLock()
    slots = Array(Int(EMPTY, high=ITEM), size=size, guarded_by=lock)
    first = Int(0, high=size - 1, guarded_by=lock, doc="the slot that is emptied next")
    count = Int(0, high=size, guarded_by=lock, doc="slots that are taken")

    @thread(each=producers)
    def producer(m, me):
        for _ in range(m.puts):
            m.lock_not_full()
            m.slots[(m.first + m.count) % m.size] = ITEM
            m.count += 1
            spin_unlock(m.lock)

    @thread(each=consumers)
    def consumer(m, me):
        for _ in range(m.takes):
            m.lock_not_empty()
            check(m.slots[m.first] == ITEM, "an empty slot is taken from")
            m.slots[m.first] = EMPTY
            m.first = (m.first + 1) % m.size
            m.count -= 1
            spin_unlock(m.lock)

    def lock_not_full(m): ...

    def lock_not_empty(m): ...

    @invariant("count")
    def slots_are_counted(m):
        """Whenever nobody has the lock, as many slots are taken as are counted."""
        return sum(m.slots[i] for i in range(m.size)) == m.count

    @measure("fill")
    def fill(m):
        """How full the buffer gets."""
        return m.count


class LookAgain(Buffer):
    """Waits without the lock, takes it, and looks again."""

    def lock_not_full(m):
        spin_lock(m.lock)
        while m.count == m.size:
            spin_unlock(m.lock)
            wait_until(m.count < m.size)
            spin_lock(m.lock)

    def lock_not_empty(m):
        spin_lock(m.lock)
        while m.count == 0:
            spin_unlock(m.lock)
            wait_until(m.count > 0)
            spin_lock(m.lock)

    expect = [
        Holds(),
        Holds(size=2),
        Holds(consumers=2),
        Holds(consumers=2, puts=2, size=2),
        Holds(producers=1, puts=3, size=2),
    ]


class LookOnce(LookAgain):
    """Does not look again: between the wait and the lock another may fill the last slot, or empty it."""

    def lock_not_full(m):
        wait_until(m.count < m.size)
        spin_lock(m.lock)

    def lock_not_empty(m):
        wait_until(m.count > 0)
        spin_lock(m.lock)

    expect = [
        Refutes("domain"),
        Refutes("check", producers=1, puts=2, consumers=2),
        Holds(producers=1, puts=2),
    ]


class If(LookAgain):
    """`if` where `while` belongs: needs a third that comes between, as the first look is under the lock."""

    def lock_not_full(m):
        spin_lock(m.lock)
        if m.count == m.size:
            spin_unlock(m.lock)
            wait_until(m.count < m.size)
            spin_lock(m.lock)

    expect = [Holds(), Refutes("domain", puts=2)]


class LookWithoutLock(LookAgain):
    """Reads `count` without the lock and does not say that this is meant."""

    def lock_not_full(m):
        while m.count == m.size:
            cpu_relax()
        spin_lock(m.lock)

    expect = [Refutes("race")]


class KeepLock(LookAgain):
    """Waits with the lock in its hands, so that nobody can take what it waits for away."""

    def lock_not_full(m):
        spin_lock(m.lock)
        wait_until(m.count < m.size)

    expect = [Refutes("deadlock"), Holds(size=2)]
