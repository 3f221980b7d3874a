"""The last look at a compiled thread: where bottom halves are off, where the environment rests, what never ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.graph import predecessors, simplify, stops_from, thread_jumps
from qmodel.ir.program import Choose, Nop, Primitive, Template

if TYPE_CHECKING:
    from qmodel.frontend.diagnostics import File, SpecError
    from qmodel.ir.program import Node, Site


ASK = "ask"
"""A primitive that marks where the look at a budget begins."""


def shape(template: Template, files: Mapping[str, File]) -> Template:
    """Return the template with bottom halves and resting places marked. Raises SpecError."""
    template = replace(template, nodes=thread_jumps(template.nodes))
    nodes = list(template.nodes)
    _refuse_idle_loops(nodes, files)
    first = set(_first(nodes))
    for number, off in enumerate(_bottom_halves(template, files)):
        nodes[number] = replace(nodes[number], bh_off=off)
    before = predecessors(nodes)
    for number in range(len(nodes)):
        if isinstance(nodes[number].instruction, Choose) and (number in first or _turns_back(nodes, number)):
            asked = _asked(nodes, before, number)
            nodes[asked] = replace(nodes[asked], boundary=True)
    nodes = [replace(n, instruction=Nop()) if _is(n, ASK) else n for n in nodes]
    nodes = _rests(template, nodes)
    kept, _ = simplify(nodes)
    return replace(template, nodes=kept)


def _at(files: Mapping[str, File], site: Site, message: str, remedy: str) -> SpecError:
    return files[site.file].error_at(site.line, site.column, site.end_column, message, remedy)


def _refuse_idle_loops(nodes: list[Node], files: Mapping[str, File]) -> None:
    """Refuse a loop that has no way out and touches no shared memory: no step through it would ever end."""
    for start in range(len(nodes)):
        number, seen = start, list[int]()
        while len(nodes[number].next) == 1 and not nodes[number].boundary and number not in seen:
            seen.append(number)
            number = nodes[number].next[0]
        if number in seen:
            first = min((nodes[n].site for n in seen[seen.index(number) :]), key=lambda site: (site.line, site.column))
            remedy = "let it read what it waits for, or leave it by `break`"
            raise _at(files, first, "this loop never ends and touches no shared memory", remedy)


def _bottom_halves(template: Template, files: Mapping[str, File]) -> list[bool]:
    """Tell for each node whether this CPU's bottom halves are off before it."""
    depth: dict[int, int] = {0: 1 if template.kind == "softirq" else 0}
    stack = [0]
    while stack:
        number = stack.pop()
        node = template.nodes[number]
        after = depth[number]
        if isinstance(node.instruction, Primitive):
            after += {"local_bh_disable": 1, "local_bh_enable": -1}.get(node.instruction.name, 0)
        if after < 0:
            raise _at(files, node.site, "bottom halves are on already", "call local_bh_disable() before")
        for successor in node.next:
            if successor not in depth:
                depth[successor] = after
                stack.append(successor)
            elif depth[successor] != after:
                remedy = "disable and enable in pairs on every way through the function"
                raise _at(files, node.site, "bottom halves are on along one way to here and off along another", remedy)
    for number in template.ends:
        if depth.get(number, 0) and template.kind != "softirq":
            remedy = "call local_bh_enable()"
            raise _at(files, template.nodes[number].site, "the thread ends with bottom halves off", remedy)
    return [depth.get(number, 0) > 0 for number in range(len(template.nodes))]


def _asked(nodes: list[Node], before: list[list[int]], number: int) -> int:
    """Return where a choice begins: in one step with the look at its budget, which nobody may use up in between."""
    match [(test, asked) for test in before[number] for asked in before[test]]:
        case [(_, asked)] if _is(nodes[asked], ASK):
            return asked
    return number


def _first(nodes: list[Node]) -> list[int]:
    """Return the nodes that a thread passes before its first access: they run once, when everything begins."""
    found, stack = [], [0]
    seen = {0}
    while stack:
        number = stack.pop()
        found.append(number)
        if nodes[number].boundary or isinstance(nodes[number].instruction, Choose):
            continue
        new = [n for n in nodes[number].next if n not in seen]
        seen.update(new)
        stack.extend(new)
    return found


def _turns_back(nodes: list[Node], start: int) -> bool:
    """Tell whether a node can be reached from itself within a step: a choice there is a step of its own."""
    stack, seen = list(nodes[start].next), set()
    while stack:
        number = stack.pop()
        if number == start:
            return True
        if number not in seen and not nodes[number].boundary:
            seen.add(number)
            stack.extend(nodes[number].next)
    return False


def _rests(template: Template, nodes: list[Node]) -> list[Node]:
    """Mark where a thread may stay for ever: a softirq at its entry, the environment before each of its acts."""
    nodes = list(nodes)
    if template.kind == "softirq":
        entry = next(i for i, n in enumerate(nodes) if _is(n, "softirq_entry"))
        nodes[entry] = replace(nodes[entry], rest=True)
        return nodes
    for number, node in enumerate(nodes):
        if not _is(node, "rest"):
            continue
        nodes[number] = replace(node, instruction=Nop())
        first = [i for i in stops_from(nodes, number) if nodes[i].next]
        if all(_only_from(nodes, stop, number) for stop in first):
            for stop in first:
                nodes[stop] = replace(nodes[stop], rest=True)
        else:
            nodes[number] = replace(nodes[number], boundary=True, rest=True)
    return nodes


def _only_from(nodes: list[Node], stop: int, start: int) -> bool:
    """Tell whether every way to a boundary comes from one node, without another boundary in between."""
    before = predecessors(nodes)
    seen: set[int] = set()
    stack = list(before[stop])
    while stack:
        number = stack.pop()
        if number in seen or number == start:
            continue
        seen.add(number)
        if nodes[number].boundary:
            return False
        stack.extend(before[number])
    return True


def _is(node: Node, name: str) -> bool:
    return isinstance(node.instruction, Primitive) and node.instruction.name == name
