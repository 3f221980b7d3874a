"""The generated module of a program: its step functions, and what is looked at in every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qmodel.engines.layout import Layout
from qmodel.engines.python.codegen import StepGenerator, at_code, read_field
from qmodel.engines.python.expressions import Atom, ExpressionWriter, join, packets
from qmodel.ir.expr import At, Expr, Read
from qmodel.ir.program import Program

Step = Callable[[int, Callable[[int], None]], bool]
Event = Callable[[int, int, bool], None]
Measured = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Model:
    """A program as Python code.

    properties: the names that `event` and `observe` number. successors: calls `emit` with every successor of a state,
    and returns whether a circle of waits is possible. steps: for each thread and boundary the step function.
    observe: returns the numbers of the properties that a state violates, and tells `measured` what it measures.
    quiescent: tells whether a state is one where everything rests.
    """

    program: Program
    layout: Layout
    properties: tuple[str, ...]
    source: str
    successors: Step
    steps: list[list[Step]]
    observe: Callable[[int], tuple[int, ...] | list[int]]
    quiescent: Callable[[int], bool]


def property_names(program: Program) -> list[str]:
    """Return the properties that a program is judged on, its own first."""
    return [*(p.name for p in program.properties), *(name for name, _ in program.builtin)]


def build(program: Program, event: Event, measured: Measured) -> Model:
    """Generate and load the code of a lowered program. `event` and `measured` are called by it."""
    layout = Layout(program)
    properties = property_names(program)
    all_names = [*properties, *(n for n in ("order", "no-leak", "once") if n not in properties)]
    parts: list[str] = []
    tables: list[str] = []
    calls: list[str] = []
    for thread in program.threads:
        generator = StepGenerator(program, layout, thread, all_names)
        names = []
        for start in generator.places.boundaries:
            if generator.nodes[start].next:
                parts.append(generator.function(start))
                names.append(generator.name(start))
            else:
                names.append("ended")
        tables.append(f"steps_{thread.tid} = [{', '.join(names)}]")
        calls.append(f"steps_{thread.tid}[{read_field('s', layout.counters[thread.tid])}](s, emit)")
    parts.append("\n".join(tables))
    parts.append("def successors(s, emit):\n    return " + " | ".join(calls or ["False"]))
    parts.append(_observe(program, layout))
    source = "def ended(s, emit):\n    return False\n\n\n" + "\n\n\n".join(parts) + "\n"
    namespace: dict[str, Any] = {"event": event, "measured": measured, "packets": packets, "join": join}
    exec(compile(source, f"<{program.model} {program.variant}>", "exec"), namespace)
    return Model(
        program=program,
        layout=layout,
        properties=tuple(all_names),
        source=source,
        successors=namespace["successors"],
        steps=[namespace[f"steps_{t.tid}"] for t in program.threads],
        observe=namespace["observe"],
        quiescent=namespace["quiescent"],
    )


class _Looks(ExpressionWriter):
    """Writes expressions over the shared variables of a packed state."""

    def __init__(self, program: Program, layout: Layout) -> None:
        super().__init__(program.skb_bits)
        self.program, self.layout = program, layout

    def local(self, name: str) -> Atom:
        raise AssertionError(f"a property reads the local {name}")

    def read(self, place: Read) -> Atom:
        index = 0 if place.index is None else self.value(place.index)
        assert isinstance(index, int), "a property has a computed index"
        bits = self.layout.shared[place.var].element(index)
        return f"({read_field('s', bits)})" if bits.width else bits.low

    def at(self, part: At) -> Atom:
        return at_code(self.program, self.layout, part)


def _observe(program: Program, layout: Layout) -> str:
    looks = _Looks(program, layout)
    lines = ["def quiescent(s):", f"    return {_quiescent(program, layout)}", "", "", "def observe(s):"]
    body: list[str] = []
    if program.properties:
        body.append("bad = ()")
    for number, prop in enumerate(program.properties):
        guards = _free(layout, prop.locks)
        if prop.kind == "quiescent":
            guards = [_quiescent(program, layout), *guards]
        code = looks.condition(prop.cond)
        condition = " and ".join([*guards, f"not ({code})" if isinstance(code, str) else str(not code)])
        body += [f"# {prop.name}", f"if {condition}:", f"    bad = (*bad, {number})"]
    for number, measure in enumerate(program.measures):
        guards = _free(layout, measure.locks)
        body += [f"# {measure.name}", f"if {' and '.join(guards) or 'True'}:"]
        body.append(f"    measured({number}, {_number(looks, measure.value)}, s)")
    body.append("return bad" if program.properties else "return ()")
    return "\n".join([*lines, *("    " + line for line in body)])


def _number(looks: _Looks, expr: Expr) -> str:
    return f"int({looks.value(expr)})"


def _free(layout: Layout, locks: tuple[Read, ...]) -> list[str]:
    """Return the code that tells whether locks are free: one mask for all of them."""
    mask = 0
    for lock in locks:
        index = 0 if lock.index is None else getattr(lock.index, "value", 0)
        bits = layout.shared[lock.var].element(index)
        mask |= bits.mask << bits.shift
    return [f"not s & {mask}"] if mask else []


def _quiescent(program: Program, layout: Layout) -> str:
    """Return the code that tells whether everything rests: one comparison, and more where a thread has many rests."""
    mask = value = 0
    more: list[str] = []
    for thread in program.threads:
        template = program.template_of(thread.tid)
        nodes = template.ends if thread.kind == "task" else template.rests
        numbers = [layout.places[thread.template].number[n] for n in sorted(nodes)]
        counter = layout.counters[thread.tid]
        if len(numbers) == 1:
            mask |= counter.mask << counter.shift
            value |= counter.put(numbers[0])
        else:
            more.append(str(at_code(program, layout, At(thread.tid, frozenset(nodes)))))
    for name, variable in program.variables.items():
        if variable.rest is not None:
            for index in range(variable.size or 1):
                bits = layout.shared[name].element(index)
                mask |= bits.mask << bits.shift
                value |= bits.put(variable.rest)
    return " and ".join([f"s & {mask} == {value}", *more])
