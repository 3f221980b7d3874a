"""Lock discipline, as far as it can be told from the code: checks that always pass are removed.

For each node: the locks that are surely held and those that may be held, by a walk over the graph. What cannot be told
(an array of locks with a computed index) stays checked at run time. A check that a task ends without a lock is added.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import Apply, Const, Local, Own, Read, apply
from qmodel.ir.flow import forward
from qmodel.ir.graph import simplify
from qmodel.ir.program import Assign, Fail, Guard, Node, Nop, Program, Template
from qmodel.passes.memory.buffers import pending
from qmodel.passes.memory.meaning import OWN_HOLD

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmodel.ir.expr import Expr

_Held = frozenset[Read]


def surely_held(program: Program, template: Template) -> list[_Held]:
    """Return for each node the locks that the thread surely holds before it."""
    found = forward(template.nodes, frozenset(), lambda n, held: _after(program, n, held, sure=True), union=False)
    return [held or frozenset() for held in found]


def maybe_held(program: Program, template: Template) -> list[_Held]:
    """Return for each node the locks that the thread may hold before it."""
    found = forward(template.nodes, frozenset(), lambda n, held: _after(program, n, held, sure=False), union=True)
    return [held or frozenset() for held in found]


def _after(program: Program, node: Node, held: _Held, *, sure: bool) -> _Held:
    access = node.access
    if access is not None and access.name == "spin_unlock" and isinstance(access.place, Read):
        # Others may see it later; for this thread the lock is gone.
        lock = access.place
        return held - {lock} if _fixed(lock.index) else frozenset(h for h in held if h.var != lock.var or not sure)
    match node.instruction:
        case Assign(Read(var, index) as lock, value) if program.variables[var].domain.kind == "lock":
            if value == OWN_HOLD:
                return held | {lock} if _fixed(index) or not sure else held
            if sure and not _fixed(index):
                return frozenset(h for h in held if h.var != var)
            return held - {lock} if _fixed(index) else held
        case Assign(Local(name)):
            # A lock that was named through this local is another one now.
            return frozenset(h for h in held if h.index != Local(name)) if sure else held
        case _:
            return held


def _fixed(index: Expr | None) -> bool:
    return index is None or isinstance(index, Const | Own)


def prune(program: Program) -> Program:
    """Return the program without checks of locks that always pass, and with those of what is held at the end."""
    return replace(program, templates={name: _prune(program, t) for name, t in program.templates.items()})


def _prune(program: Program, template: Template) -> Template:
    sure, maybe = surely_held(program, template), maybe_held(program, template)
    nodes = [_pruned(n, sure[i], maybe[i]) for i, n in enumerate(template.nodes)]
    ended = replace(template, nodes=simplify(nodes)[0])
    maybe = maybe_held(program, ended)
    # A task ends at its end, a softirq where it comes to rest again.
    ends = ended.ends if template.kind != "softirq" else {i for i, n in enumerate(ended.nodes) if n.rest}
    held_at_end = {n: maybe[n] for n in ends if template.kind != "buffer"}

    def check(number: int) -> list[Fail]:
        locks = sorted({k for lock in held_at_end.get(number, ()) for k in _elements(program, lock)}, key=str)
        found = []
        for lock in locks:
            # A release that others have not seen yet is one.
            held = apply("and", apply("==", lock, OWN_HOLD), apply("not", pending(program, lock)))
            found.append(Fail(held, "locking", (f"the {template.kind} ends and still holds {lock.var}",)))
        return found

    if not any(held_at_end.values()):
        return ended
    return _at_ends(ended, sorted(held_at_end), check)


def _elements(program: Program, lock: Read) -> list[Read]:
    """Return the lock itself, or where its index was computed every lock that it may be."""
    if _fixed(lock.index):
        return [lock]
    return [Read(lock.var, Const(i)) for i in range(program.variables[lock.var].size or 1)]


def _at_ends(template: Template, ends: list[int], check: Callable[[int], list[Fail]]) -> Template:
    """Put checks before the end of a thread, within the step that leads there."""
    nodes = list(template.nodes)
    for end in ends:
        pieces = check(end)
        if not pieces:
            continue
        first = len(nodes)
        for offset, piece in enumerate(pieces):
            following = first + offset + 1 if offset + 1 < len(pieces) else end
            nodes.append(
                replace(
                    nodes[end],
                    instruction=piece,
                    next=(following,),
                    boundary=False,
                    label=None,
                    access=None,
                    rest=False,
                )
            )
        for number, node in enumerate(nodes[:first]):
            if end in node.next:
                nodes[number] = replace(node, next=tuple(first if n == end else n for n in node.next))
    return replace(template, nodes=simplify(nodes)[0])


def _pruned(node: Node, sure: _Held, maybe: _Held) -> Node:
    match node.instruction:
        case Fail(Apply("!=", (Read() as lock, own)), "race" | "locking") if own == OWN_HOLD and lock in sure:
            return replace(node, instruction=Nop())
        case Fail(Apply("==", (Read() as lock, own)), "deadlock") if own == OWN_HOLD and _surely_not(lock, maybe):
            return replace(node, instruction=Nop())
        case Guard(_, Read() as lock) if _surely_not(lock, maybe):
            return replace(node, instruction=Guard(apply("==", lock, Const(0)), lock))
        case _:
            return node


def _surely_not(lock: Read, maybe: _Held) -> bool:
    same = [h for h in maybe if h.var == lock.var]
    return lock not in same and (not same or (_fixed(lock.index) and all(_distinct(h.index, lock.index) for h in same)))


def _distinct(first: Expr | None, second: Expr | None) -> bool:
    return isinstance(first, Const) and isinstance(second, Const) and first != second
