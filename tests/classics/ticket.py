"""A ticket lock, as arch_spinlock_t was one on x86 from 2.6.25 to 4.1.

Each thread draws a ticket and waits until it is served. `owner` moves on by one when the lock is released, so that
tickets are served in the order in which they were drawn.
"""

from qmodel.lang import (
    READ_ONCE,
    WRITE_ONCE,
    Holds,
    Int,
    Model,
    Param,
    Refutes,
    atomic_fetch_add,
    demand,
    inside,
    invariant,
    thread,
    wait_until,
)


class Ticket(Model):
    """A lock that is fair."""

    cpus = Param(2, low=1, grows=True, doc="threads")
    rounds = Param(2, low=1, grows=True, doc="how often each of them enters")

    next_ticket = Int(0, high=cpus * rounds, doc="the ticket that is drawn next")
    owner = Int(0, high=cpus * rounds, doc="the ticket that is served")
    served = Int(0, high=cpus * rounds, doc="how many have entered: what the lock does not know")

    @thread(each=cpus)
    def process(m, me):
        for _ in range(m.rounds):
            ticket = m.draw()
            wait_until(m.owner == ticket)
            m.critical_section(ticket)
            WRITE_ONCE(m.owner, ticket + 1)

    def draw(m): ...

    def critical_section(m, ticket):
        n = READ_ONCE(m.served)
        demand("fair", n == ticket)
        WRITE_ONCE(m.served, n + 1)

    @invariant("mutex")
    def one_at_a_time(m):
        """At most one thread is in its critical section."""
        return inside(m.critical_section) <= 1


class FetchAdd(Ticket):
    """A ticket is drawn in one step, so that no two are alike."""

    def draw(m):
        return atomic_fetch_add(1, m.next_ticket)

    expect = [Holds(), Holds(cpus=3)]


class LoadStore(Ticket):
    """A ticket is read, and then the next one is stored: two threads may draw the same.

    They enter together, and the second finds that its ticket was served already. Or one has come and gone before the
    other looks at `owner`, which then waits for a ticket that is not served again.
    """

    def draw(m):
        ticket = READ_ONCE(m.next_ticket)
        WRITE_ONCE(m.next_ticket, ticket + 1)
        return ticket

    expect = [Refutes("mutex", "fair", "deadlock", rounds=1)]
