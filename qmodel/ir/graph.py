"""Building and rewriting control-flow graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from qmodel.ir.expr import Const, Expr, Local, reads_of, substitute
from qmodel.ir.program import Assign, Branch, Instruction, Label, Node, Nop, Primitive, Site, Template

Ends = list[tuple[int, int]]
"""Open ends of a graph: (node, which of its successors) that the next node will be."""


@dataclass(slots=True)
class _Draft:
    instruction: Instruction
    next: list[int]
    site: Site
    boundary: bool
    label: Label | None
    access: Primitive | None


class GraphBuilder:
    """Grows a graph at its open ends. Node 0 is the entry."""

    def __init__(self, site: Site) -> None:
        self._drafts: list[_Draft] = []
        self.ends: Ends = []
        self.emit(Nop(), site)

    @property
    def reachable(self) -> bool:
        """Tell whether anything that is emitted now can ever run."""
        return bool(self.ends)

    def emit(
        self,
        instruction: Instruction,
        site: Site,
        *,
        boundary: bool = False,
        label: Label | None = None,
        access: Primitive | None = None,
    ) -> int:
        """Add a node at every open end, and return its number; its own end is then the open one."""
        number = len(self._drafts)
        self._drafts.append(_Draft(instruction, [-1], site, boundary, label, access))
        self.link(self.ends, number)
        self.ends = [(number, 0)]
        return number

    def branch(self, cond: Expr, site: Site) -> tuple[Ends, Ends]:
        """Add a branch and return the open ends where the condition holds and where it does not."""
        if isinstance(cond, Const):
            return (self.take(), []) if cond.value else ([], self.take())
        number = self.emit(Branch(cond), site)
        self._drafts[number].next = [-1, -1]
        self.ends = []
        return [(number, 0)], [(number, 1)]

    def take(self) -> Ends:
        """Return the open ends and leave none."""
        ends, self.ends = self.ends, []
        return ends

    def link(self, ends: Ends, target: int) -> None:
        """Let open ends go on at a node that exists."""
        for node, slot in ends:
            self._drafts[node].next[slot] = target

    def finish(self, site: Site) -> tuple[Node, ...]:
        """End the thread at every open end, and return the graph without what cannot be reached."""
        if self.ends:
            number = self.emit(Nop(), site, boundary=True)
            self._drafts[number].next = []
            self.ends = []
        nodes = tuple(Node(d.instruction, tuple(d.next), d.site, d.boundary, d.label, d.access) for d in self._drafts)
        return simplify(nodes)[0]


def simplify(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], dict[int, int]]:
    """Return the graph without idle and unreachable nodes, numbered in the order of its text, and old to new numbers.

    The entry stays node 0.
    """

    def idle(number: int) -> bool:
        node = nodes[number]
        return (
            isinstance(node.instruction, Nop) and len(node.next) == 1 and not (node.boundary or node.label or node.rest)
        )

    def skip(number: int) -> int:
        seen = set()
        while idle(number) and number not in seen and number != 0:
            seen.add(number)
            number = nodes[number].next[0]
        return number

    order, stack, found = [], [0], {0}
    while stack:
        number = stack.pop()
        order.append(number)
        for successor in map(skip, nodes[number].next):
            if successor not in found:
                found.add(successor)
                stack.append(successor)
    order.sort()
    renumber = {old: new for new, old in enumerate(order)}
    kept = tuple(replace(nodes[old], next=tuple(renumber[skip(n)] for n in nodes[old].next)) for old in order)
    return kept, renumber


def thread_jumps(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the graph in which a branch on what was just set to a constant is decided where it was set.

    `return False` in an inlined function, and `if f():` around it, then have no way in common with `return True`.
    """
    result = list(nodes)
    for number in range(len(nodes)):
        match nodes[number]:
            case Node(instruction=Assign(Local(name), Const() as value), next=(following,)):
                _follow(result, number, {name: value}, following)
            case _:
                pass
    return simplify(result)[0]


def _follow(nodes: list[Node], start: int, known: dict[str, Expr], at: int) -> None:
    """Walk on from an assignment as far as branches are decided, and make the assignment lead there."""
    copies: list[Node] = []
    decided, target = 0, at
    for _ in range(len(nodes)):
        node = nodes[at]
        if node.boundary or node.label or node.rest:
            break
        match node.instruction:
            case Nop():
                at = node.next[0]
            case Assign(Local(name), value) if not reads_of(value):
                folded = substitute(value, lambda e: known.get(e.name) if isinstance(e, Local) else None)
                known.pop(name, None)
                if isinstance(folded, Const):
                    known[name] = folded
                copies.append(replace(node, instruction=Assign(Local(name), folded)))
                at = node.next[0]
            case Branch(cond) if not reads_of(cond):
                folded = substitute(cond, lambda e: known.get(e.name) if isinstance(e, Local) else None)
                if not isinstance(folded, Const):
                    break
                at = node.next[0 if folded.value else 1]
                decided, target = len(copies), at
            case _:
                break
    if target == nodes[start].next[0]:
        return
    first = len(nodes)
    for offset, copy in enumerate(copies[:decided]):
        nodes.append(replace(copy, next=(first + offset + 1 if offset + 1 < decided else target,)))
    nodes[start] = replace(nodes[start], next=(first if decided else target,))


@dataclass(frozen=True, slots=True)
class Skip:
    """In a list of pieces: skip the next `count` pieces where the condition does not hold."""

    cond: Expr
    count: int


Piece = Instruction | Skip


def expand(template: Template, rewrite: Callable[[int, Node], Iterable[Piece] | None]) -> Template:
    """Return the template with every node for which `rewrite` gives pieces replaced by them, in order.

    The first piece inherits that the node is a boundary, the end of the pieces its label and what it goes on to.
    """
    drafts: list[Node] = []
    first: dict[int, int] = {}
    later: list[tuple[int, int]] = []  # node whose successors are still numbers of the old graph, old number
    for number, node in enumerate(template.nodes):
        pieces = rewrite(number, node)
        first[number] = len(drafts)
        if pieces is None:
            later.append((len(drafts), number))
            drafts.append(node)
            continue
        start = len(drafts)
        body = list(pieces)
        for offset, piece in enumerate(body):
            here = start + offset
            if isinstance(piece, Skip):
                item = replace(node, instruction=Branch(piece.cond), next=(here + 1, here + 1 + piece.count))
            else:
                item = replace(node, instruction=piece, next=(here + 1,))
            keep = offset == 0
            drafts.append(replace(item, boundary=node.boundary and keep, rest=node.rest and keep, label=None))
        later.append((len(drafts), number))
        keep = not body
        drafts.append(replace(node, instruction=Nop(), boundary=node.boundary and keep, rest=node.rest and keep))
    for here, number in later:
        drafts[here] = replace(drafts[here], next=tuple(first[n] for n in template.nodes[number].next))
    return replace(template, nodes=simplify(drafts)[0])


def predecessors(nodes: Sequence[Node]) -> list[list[int]]:
    """Return for each node the nodes that go on to it."""
    result: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for successor in node.next:
            result[successor].append(number)
    return result


def stops_from(nodes: Sequence[Node], start: int) -> list[int]:
    """Return the boundaries where a step that starts at `start` can end, in the order in which they are met."""
    found: list[int] = []
    seen: set[int] = set()
    stack = list(reversed(nodes[start].next))
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        if nodes[number].boundary:
            found.append(number)
        else:
            stack.extend(reversed(nodes[number].next))
    return found
