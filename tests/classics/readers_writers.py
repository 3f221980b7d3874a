"""Readers and writers: many may read at once, a writer is alone.

A reader counts itself under the lock and leaves without it. A writer keeps the lock, so that no reader can come, and
waits until those that are there have left.
"""

from qmodel.lang import (
    READ_ONCE,
    WRITE_ONCE,
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    SpinLock,
    atomic_dec,
    atomic_inc,
    inside,
    invariant,
    measure,
    spin_lock,
    spin_unlock,
    thread,
    wait_until,
)


class ReadersWriters(Model):
    """A lock that readers share."""

    readers = Param(2, grows=True, doc="threads that read")
    writers = Param(1, grows=True, doc="threads that write")

    lock = SpinLock()
    reading = Int(0, high=readers, doc="readers that are in")
    data = Int(0, high=1)

    @thread(each=readers)
    def reader(m, me):
        spin_lock(m.lock)
        atomic_inc(m.reading)
        spin_unlock(m.lock)
        m.read()
        m.leave()

    @thread(each=writers)
    def writer(m, me):
        m.lock_alone()
        m.write()
        spin_unlock(m.lock)

    def read(m):
        READ_ONCE(m.data)

    def write(m):
        WRITE_ONCE(m.data, 1)

    def leave(m):
        atomic_dec(m.reading)

    def lock_alone(m): ...

    @invariant("exclusive")
    def a_writer_is_alone(m):
        """While a thread writes no other thread reads or writes."""
        return inside(m.write) == 0 or inside(m.write, m.read) == 1

    @measure("at once")
    def readers_at_once(m):
        """Threads that read at the same time."""
        return inside(m.read)


class WaitUnderLock(ReadersWriters):
    """The writer shuts the door, and then waits for those inside."""

    def lock_alone(m):
        spin_lock(m.lock)
        wait_until(m.reading == 0)

    expect = [Holds(), Holds(writers=2), Holds(readers=3)]


class WaitBeforeLock(WaitUnderLock):
    """The writer waits first: a reader may come between the wait and the lock."""

    def lock_alone(m):
        wait_until(m.reading == 0)
        spin_lock(m.lock)

    expect = [Refutes("exclusive", readers=1), Refutes("exclusive")]


class LeaveUnderLock(WaitUnderLock):
    """A reader takes the lock to leave: the writer has it, and waits for just that reader."""

    def leave(m):
        spin_lock(m.lock)
        atomic_dec(m.reading)
        spin_unlock(m.lock)

    expect = [Refutes("deadlock", readers=1), Refutes("deadlock")]


class LeaveByLoadStore(WaitUnderLock):
    """A reader reads how many are in, and stores one less: what happens in between is lost.

    Another that leaves is still counted, and the writer waits for it for ever. Another that enters is not counted, and
    the writer does not wait for it; when it leaves in turn the count falls below 0.
    """

    def leave(m):
        n = READ_ONCE(m.reading)
        WRITE_ONCE(m.reading, n - 1)

    expect = [Refutes("exclusive", "deadlock", "domain"), Holds(readers=1)]
