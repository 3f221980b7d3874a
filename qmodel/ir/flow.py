"""What holds at each node of a control-flow graph: which locals live, which locks are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmodel.ir.expr import Expr, Local, Read, locals_of
from qmodel.ir.graph import predecessors
from qmodel.ir.program import Assign, Branch, Choose, Drop, Fail, Guard, Instruction, Node, Primitive, Show


def expressions_of(instruction: Instruction) -> list[Expr]:
    """Return every expression that an instruction evaluates."""
    match instruction:
        case Assign(target, value):
            index = target.index if isinstance(target, Read) else None
            return [value] if index is None else [value, index]
        case Branch(cond) | Guard(cond):
            return [cond]
        case Fail(cond, _, message):
            return [cond, *(part.expr for part in message if isinstance(part, Show))]
        case Primitive(_, _, place, args):
            return [*args, *([place] if place is not None else [])]
        case Drop(name, kept):
            return [Local(name), *(Local(k) for k in kept)]
        case _:
            return []


def uses(instruction: Instruction) -> set[str]:
    """Return the locals whose values an instruction needs."""
    return {name for expr in expressions_of(instruction) for name in locals_of(expr)}


def defines(instruction: Instruction) -> str | None:
    """Return the local that an instruction sets, if any."""
    match instruction:
        case Assign(Local(name)) | Choose(name):
            return name
        case Primitive(target=str() as name):
            return name
        case _:
            return None


def live_before(nodes: Sequence[Node]) -> list[frozenset[str]]:
    """Return for each node the locals whose values may still be used from there on."""
    live: list[frozenset[str]] = [frozenset()] * len(nodes)
    before = predecessors(nodes)
    pending = list(range(len(nodes)))
    while pending:
        number = pending.pop()
        node = nodes[number]
        after: set[str] = set().union(*(live[n] for n in node.next))
        defined = defines(node.instruction)
        if defined is not None:
            after.discard(defined)
        new = frozenset(after | uses(node.instruction))
        if new != live[number]:
            live[number] = new
            pending.extend(before[number])
    return live


def forward(
    nodes: Sequence[Node],
    start: frozenset[Read],
    transfer: Callable[[Node, frozenset[Read]], frozenset[Read]],
    *,
    union: bool,
) -> list[frozenset[Read] | None]:
    """Return for each node the set that holds before it; where ways meet, the union or the intersection.

    None where no way leads to a node.
    """
    state: list[frozenset[Read] | None] = [None] * len(nodes)
    state[0] = start
    pending = [0]
    while pending:
        number = pending.pop()
        known = state[number]
        assert known is not None
        after = transfer(nodes[number], known)
        for successor in nodes[number].next:
            old = state[successor]
            new = after if old is None else (old | after if union else old & after)
            if new != old:
                state[successor] = new
                pending.append(successor)
    return state
