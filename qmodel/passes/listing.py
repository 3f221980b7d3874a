"""Printing the steps of a thread: what each does, from which line, what it reads and writes, under which locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.ir.expr import Read, reads_of
from qmodel.ir.graph import stops_from
from qmodel.ir.program import Assign, Branch, Guard, Show
from qmodel.ir.text import expr_text
from qmodel.passes.locks import surely_held

if TYPE_CHECKING:
    from qmodel.ir.program import Node, Program, Template


def listing(program: Program, template: Template) -> str:
    """Return the steps of a template as a table: one paragraph a step, in the order of the graph."""
    held = surely_held(program, template)
    numbers = {node: i for i, node in enumerate(n for n, x in enumerate(template.nodes) if x.boundary)}
    lines = []
    for start, number in numbers.items():
        node = template.nodes[start]
        if not node.next:
            lines.append(f"{number:4}  end")
            continue
        inside = _inside(template, start)
        text = "; ".join(_texts(template, inside)) or "…"
        targets = ", ".join(str(numbers[n]) for n in stops_from(template.nodes, start)) or "itself"
        lines.append(f"{number:4}  {node.site.line:4}  {node.site.function}(): {text}")
        lines.append(f"            {node.site.source}")
        facts = [
            _names("reads", {v for n in inside for v in _reads(template.nodes[n])}, program),
            _names("writes", {v for n in inside for v in _writes(template.nodes[n])}, program),
            "holds " + ", ".join(sorted(expr_text(lock) for lock in held[start])) if held[start] else "",
            "bh off" if node.bh_off and template.kind != "softirq" else "",
            "may rest here" if node.rest else "",
            f"then {targets}",
        ]
        lines.append("            " + "; ".join(f for f in facts if f))
    return "\n".join(lines)


def texts(template: Template, start: int) -> list[str]:
    """Return the accesses of the step that starts at a node, as they are printed; `…` stands for what is not known."""
    return _texts(template, _inside(template, start))


def _inside(template: Template, start: int) -> list[int]:
    """Return the nodes of a step."""
    found, stack = [start], list(template.nodes[start].next)
    while stack:
        number = stack.pop()
        if number not in found and not template.nodes[number].boundary:
            found.append(number)
            stack.extend(template.nodes[number].next)
    return sorted(found)


def _texts(template: Template, inside: list[int]) -> list[str]:
    texts: list[str] = []
    for number in inside:
        label = template.nodes[number].label
        if label is not None:
            text = "".join(p if isinstance(p, str) else _shown(p) for p in label.parts)
            if text not in texts:
                texts.append(text)
    return texts


def _shown(part: Show) -> str:
    text = expr_text(part.expr)
    return "…" if text.startswith("%") else text


def _reads(node: Node) -> set[str]:
    match node.instruction:
        case Assign(target, value):
            index = target.index if isinstance(target, Read) else None
            return reads_of(value) | (reads_of(index) if index is not None else set())
        case Branch(cond) | Guard(cond):
            return reads_of(cond)
        case _:
            return set()


def _writes(node: Node) -> set[str]:
    match node.instruction:
        case Assign(Read(var), _):
            return {var}
        case _:
            return set()


def _names(word: str, names: set[str], program: Program) -> str:
    shown = sorted(n for n in names if not program.variables[n].ghost)
    return f"{word} {', '.join(shown)}" if shown else ""
