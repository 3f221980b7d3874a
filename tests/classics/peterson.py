"""Peterson's lock for two threads (G. L. Peterson, Myths about the mutual exclusion problem, 1981).

Each thread says that it wants to enter, gives way to the other, and waits while the other wants to enter and has not
given way. Whoever gave way last waits, so that one of them always goes on and never both.
"""

from qmodel.lang import (
    READ_ONCE,
    WRITE_ONCE,
    Array,
    Bool,
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    atomic,
    cpu_relax,
    inside,
    invariant,
    smp_mb,
    smp_wmb,
    thread,
    wait_until,
)


class Peterson(Model):
    """A lock made of plain loads and stores."""

    rounds = Param(2, low=1, grows=True, doc="how often each thread enters")

    wants = Array(Bool(), size=2)
    turn = Int(0, high=1, doc="who may enter when both want to: the one to whom the other gave way last")
    visitor = Int(0, high=1, doc="touched in the critical section")

    @thread(each=2)
    def process(m, me):
        for _ in range(m.rounds):
            m.lock(me)
            m.critical_section(me)
            m.unlock(me)

    def lock(m, me):
        WRITE_ONCE(m.wants[me], True)
        WRITE_ONCE(m.turn, 1 - me)
        m.wait(me)

    def wait(m, me): ...

    def critical_section(m, me):
        WRITE_ONCE(m.visitor, me)

    def unlock(m, me):
        WRITE_ONCE(m.wants[me], False)

    @invariant("mutex")
    def one_at_a_time(m):
        """At most one thread is in its critical section."""
        return inside(m.critical_section) <= 1


class Spin(Peterson):
    """As it was published: two loads, one after the other, until one of them says that the way is free.

    An x86 keeps the store to `wants` in its buffer while it loads the other's, so that both may find the way free.
    """

    def wait(m, me):
        while READ_ONCE(m.wants[1 - me]) and READ_ONCE(m.turn) != me:
            cpu_relax()

    expect = [
        Holds(rounds=2),
        Refutes("mutex", rounds=1, memory=("tso", "weak")),
    ]


class SpinBarrier(Spin):
    """With a full barrier between the stores and the loads: enough where stores are seen in their order.

    Where they are not, the other may see `turn` before `wants`, as in TurnFirst.
    """

    def lock(m, me):
        WRITE_ONCE(m.wants[me], True)
        WRITE_ONCE(m.turn, 1 - me)
        smp_mb()
        m.wait(me)

    expect = [
        Holds(rounds=2, memory=("sc", "tso")),
        Refutes("mutex", rounds=1, memory="weak"),
    ]


class SpinBarriers(Spin):
    """With a barrier between the two stores as well."""

    def lock(m, me):
        WRITE_ONCE(m.wants[me], True)
        smp_wmb()
        WRITE_ONCE(m.turn, 1 - me)
        smp_mb()
        m.wait(me)

    expect = [Holds(rounds=2, memory=("sc", "tso", "weak"))]


class Wait(Peterson):
    """Waits in one step instead of spinning, so that waiting for ever is a deadlock."""

    def wait(m, me):
        with atomic():
            wait_until(m.turn == me or not m.wants[1 - me])

    expect = [Holds(rounds=2)]


class NoTurn(Wait):
    """Nobody gives way: when both want to enter, each waits for the other."""

    def lock(m, me):
        WRITE_ONCE(m.wants[me], True)
        wait_until(not m.wants[1 - me])

    expect = [Refutes("deadlock", rounds=1), Refutes("deadlock")]


class TestFirst(Wait):
    """Each looks at the other's wish before it states its own: both may have looked when neither has."""

    def lock(m, me):
        wait_until(not m.wants[1 - me])
        WRITE_ONCE(m.wants[me], True)

    expect = [Refutes("mutex", rounds=1), Refutes("mutex")]


class TurnFirst(Spin):
    """The two stores the other way round: a thread gives way before the other can know that it wants to enter.

    CPU0 gives way; CPU1 gives way, wants, finds nobody and enters; CPU0 wants, finds that CPU1 gave way last, enters.
    """

    def lock(m, me):
        WRITE_ONCE(m.turn, 1 - me)
        WRITE_ONCE(m.wants[me], True)
        m.wait(me)

    expect = [Refutes("mutex", rounds=1), Refutes("mutex")]
