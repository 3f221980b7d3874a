"""Watching what threads drop: a packet whose last hold goes out of use is lost.

The last use of a local that holds packets is found from the graph; where it has passed, every packet in it that is
still in the thread's hands, and in no other local that lives on, is reported by `no-leak`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import Apply, Const, Domain, Expr, Local, apply, queue_length
from qmodel.ir.flow import defines, live_before
from qmodel.ir.graph import Piece, Skip, expand, simplify
from qmodel.ir.program import Assign, Branch, Drop, Node, Program, Show, Template
from qmodel.passes.memory.meaning import OWN_HANDS, leak, where_is

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONSUMING = {"transmit", "kfree_skb", "__skb_queue_tail", "__skb_queue_head", "append_list", "push_list", "store_list"}


def add(program: Program) -> Program:
    """Return the program with a check wherever a packet may be lost."""
    if not program.packets.names:
        return program
    templates = {name: _add(program, t) for name, t in program.templates.items()}
    return replace(program, templates=templates, setup=_add(program, program.setup))


def _add(program: Program, template: Template) -> Template:
    return expand(_drops(template), lambda _, node: _pieces(program, template, node))


def _drops(template: Template) -> Template:
    """Put a Drop on every edge where a local that may hold packets goes out of use."""
    nodes = list(template.nodes)
    live = live_before(nodes)
    holding = {n for n, v in template.locals.items() if v.domain.kind in {"skb", "queue"}}
    for number in range(len(nodes)):
        node = nodes[number]
        defined = defines(node.instruction)
        available = (live[number] | ({defined} if defined else set())) & holding
        successors = list(node.next)
        for slot, successor in enumerate(node.next):
            kept = tuple(sorted(live[successor] & holding))
            for name in sorted(available - live[successor]):
                if _surely_empty(node, slot, name, kept):
                    continue
                nodes.append(
                    replace(
                        node,
                        instruction=Drop(name, kept),
                        next=(successors[slot],),
                        boundary=False,
                        label=None,
                        access=None,
                        rest=False,
                    )
                )
                successors[slot] = len(nodes) - 1
        nodes[number] = replace(node, next=tuple(successors))
    return replace(template, nodes=simplify(nodes)[0])


def _surely_empty(node: Node, slot: int, name: str, kept: Sequence[str]) -> bool:
    """Tell whether nothing can be lost with a local: its packets went elsewhere at this node, or it has none."""
    local = Local(name)
    if node.access is not None and node.access.name in _CONSUMING and local in node.access.args:
        return True
    match node.instruction:
        case Branch(Apply("!=" | "==" as op, (tested, Const(0)))) if tested == local:
            return slot == (1 if op == "!=" else 0)
        case Assign(Local(target), value) if target in kept:
            return value == local or (
                isinstance(value, Apply) and value.op in {"append", "push"} and local in value.args
            )
        case Assign(target, Const(0)):
            return target == local
        case _:
            return False


def _pieces(program: Program, template: Template, node: Node) -> list[Piece] | None:
    if not isinstance(node.instruction, Drop):
        return None
    name, kept = node.instruction.name, node.instruction.kept
    domain = template.locals[name].domain
    if domain.kind == "skb":
        return _check(program, template, Local(name), kept)
    pieces: list[Piece] = []
    for position in range(queue_length(program.skb_bits, domain.hi)):
        pieces += _check(program, template, apply("item", Local(name), Const(position)), kept)
    return [Skip(apply("!=", Local(name), Const(0)), len(pieces)), *pieces]


def _check(program: Program, template: Template, packet: Expr, kept: Sequence[str]) -> list[Piece]:
    elsewhere = [apply("in" if template.locals[k].domain.kind == "queue" else "==", packet, Local(k)) for k in kept]
    held = apply("==", where_is(packet), OWN_HANDS)
    lost = apply("and", apply("!=", packet, Const(0)), held, *(apply("not", e) for e in elsewhere))
    shown = Show(packet, Domain("skb", 0, len(program.packets.names)))
    return [Skip(lost, 2), *leak(packet, shown)]
