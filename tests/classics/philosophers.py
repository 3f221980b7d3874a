"""The dining philosophers (E. W. Dijkstra, 1965), with spinlocks for forks.

Each philosopher needs the fork on either side. If all take the one on the same side first, each may have one and wait
for the other. If each takes the one with the smaller number first, one of them cannot begin, and the circle is open.
"""

from qmodel.lang import (
    WRITE_ONCE,
    Array,
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    SpinLock,
    inside,
    invariant,
    measure,
    spin_lock,
    spin_unlock,
    thread,
)


class Philosophers(Model):
    """A circle of threads, and a lock between each two of them."""

    seats = Param(3, low=2, grows=True, doc="philosophers, and forks")
    meals = Param(1, low=1, grows=True, doc="how often each eats")

    forks = Array(SpinLock(), size=seats)
    plates = Array(Int(0, high=meals, doc="meals eaten"), size=seats)

    @thread(each=seats)
    def philosopher(m, seat):
        for meal in range(m.meals):
            m.dine(seat, meal, seat, (seat + 1) % m.seats)

    def dine(m, seat, meal, left, right): ...

    def eat(m, seat, meal):
        WRITE_ONCE(m.plates[seat], meal + 1)

    @invariant("neighbours")
    def a_fork_has_one_user(m):
        """Of two that share a fork at most one eats, so that at most half of the circle does."""
        return inside(m.eat) <= m.seats // 2

    @measure("eating")
    def eating(m):
        """Philosophers that eat at the same time."""
        return inside(m.eat)


class LeftFirst(Philosophers):
    """Everybody takes the left fork first."""

    def dine(m, seat, meal, left, right):
        spin_lock(m.forks[left])
        spin_lock(m.forks[right])
        m.eat(seat, meal)
        spin_unlock(m.forks[right])
        spin_unlock(m.forks[left])

    expect = [Refutes("deadlock", seats=2), Refutes("deadlock")]


class Ordered(LeftFirst):
    """Everybody takes the fork with the smaller number first: the last philosopher the right one."""

    def dine(m, seat, meal, left, right):
        first = min(left, right)
        second = max(left, right)
        spin_lock(m.forks[first])
        spin_lock(m.forks[second])
        m.eat(seat, meal)
        spin_unlock(m.forks[second])
        spin_unlock(m.forks[first])

    expect = [Holds(meals=2), Holds(seats=4)]
