"""Two locks, taken by two threads in opposite orders: each may have the one that the other waits for."""

from qmodel.lang import (
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    SpinLock,
    invariant,
    spin_lock,
    spin_trylock,
    spin_unlock,
    thread,
)


class Pair(Model):
    """Two threads move a unit from one account to the other, in opposite directions."""

    rounds = Param(1, low=1, grows=True, doc="how often each moves a unit")

    a_lock = SpinLock()
    b_lock = SpinLock()
    a = Int(1, low=-1, high=3, guarded_by=a_lock)
    b = Int(1, low=-1, high=3, guarded_by=b_lock)

    @thread
    def a_to_b(m):
        for _ in range(m.rounds):
            spin_lock(m.a_lock)
            spin_lock(m.b_lock)
            m.a -= 1
            m.b += 1
            spin_unlock(m.b_lock)
            spin_unlock(m.a_lock)

    @thread
    def b_to_a(m):
        for _ in range(m.rounds):
            m.lock_both()
            m.b -= 1
            m.a += 1
            m.unlock_both()

    def lock_both(m): ...

    def unlock_both(m):
        spin_unlock(m.b_lock)
        spin_unlock(m.a_lock)

    @invariant("sum")
    def nothing_is_lost(m):
        """Whenever nobody has a lock the accounts add up to what was there before."""
        return m.a + m.b == 2


class Abba(Pair):
    """b_to_a takes the other lock first."""

    def lock_both(m):
        spin_lock(m.b_lock)
        spin_lock(m.a_lock)

    expect = [Refutes("deadlock")]


class Abab(Pair):
    """Both take the locks in the same order."""

    def lock_both(m):
        spin_lock(m.a_lock)
        spin_lock(m.b_lock)

    expect = [Holds(), Holds(rounds=2)]


class Trylock(Pair):
    """b_to_a only tries the other lock, and gives its own back where it does not get it."""

    def lock_both(m):
        spin_lock(m.b_lock)
        while not spin_trylock(m.a_lock):
            spin_unlock(m.b_lock)
            spin_lock(m.b_lock)

    expect = [Holds(), Holds(rounds=2)]
