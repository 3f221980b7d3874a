"""A Treiber stack (R. K. Treiber, Coping with parallelism, 1986) and the ABA problem.

A stack of nodes, each with the number of the next one. pop() reads the top node and its next one, and makes that the
top with a cmpxchg. Between the two another thread may take both nodes and put the first one back: the cmpxchg finds the
top that it expects, and makes a node the top that the other thread has.
"""

from qmodel.lang import (
    READ_ONCE,
    WRITE_ONCE,
    Array,
    Bool,
    Holds,
    Int,
    Model,
    Refutes,
    atomic,
    cmpxchg,
    invariant,
    scenario,
    thread,
)

NONE = 0
A = 1
B = 2
NODES = 3
"""One more than there are nodes, as their numbers begin at 1."""


class Treiber(Model):
    """A stack without a lock; one thread pops, another pops twice and pushes."""

    top = Int(0, high=NODES * 8 - 1, doc="the number of the top node, and what a variant packs beside it")
    next = Array(Int(0, high=NODES - 1), size=NODES)
    taken = Array(Bool(), size=NODES)

    @thread
    def popper(m):
        m.pop()

    @thread
    def recycler(m):
        a = m.pop()
        m.pop()
        if a != NONE:
            m.push(a)

    def pop(m):
        top = READ_ONCE(m.top)
        while m.node(top) != NONE:
            following = READ_ONCE(m.next[m.node(top)])
            with atomic():
                found = cmpxchg(m.top, top, m.new_top(top, following))
                if found == top:
                    m.taken[m.node(top)] = True
            if found == top:
                return m.node(top)
            top = found
        return NONE

    def push(m, node):
        top = READ_ONCE(m.top)
        while True:
            WRITE_ONCE(m.next[node], m.node(top))
            with atomic():
                found = cmpxchg(m.top, top, m.new_top(top, node))
                if found == top:
                    m.taken[node] = False
            if found == top:
                break
            top = found

    def node(m, top): ...

    def new_top(m, top, node): ...

    @invariant("owned")
    def nobody_has_the_top(m):
        """The top of the stack is not a node that a thread has taken."""
        return all(m.top % NODES != node or not m.taken[node] for node in range(A, NODES))

    @scenario("ab")
    def a_above_b(m):
        """A is the top, and B is below it."""
        m.top = A
        m.next[A] = B


class Plain(Treiber):
    """The top is the number of a node and nothing else."""

    def node(m, top):
        return top

    def new_top(m, top, node):
        return node

    expect = [Holds(), Refutes("owned", scenario="ab")]


class Tagged(Treiber):
    """Beside the node the top has a number that each change raises, so that it is never what it was before."""

    def node(m, top):
        return top % NODES

    def new_top(m, top, node):
        return (top // NODES + 1) * NODES + node

    expect = [Holds(), Holds(scenario="ab")]
