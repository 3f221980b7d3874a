"""What the functions of a model unit share: names, constant arrays, numbers of properties and of watched places."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.engines.layout import Layout
from qmodel.engines.native.expressions import COMPARE, INT64, Code, ExpressionWriter, number, unsigned
from qmodel.engines.native.naming import Names
from qmodel.ir.expr import At, Local, Own, Read, interval
from qmodel.ir.flow import live_before
from qmodel.ir.program import Assign, Choose, Fail, Program, Site, Template, Thread
from qmodel.passes.domains import bounds_of
from qmodel.passes.locks import maybe_held

WORD = 64
"""Bits of a machine word."""

Facts = tuple[list[frozenset[str]], list[frozenset[Read]], frozenset[str]]
"""For each node the locals that live before it and the locks that may be held; the locals that may have any value."""


class Unit:
    """What is known of a program while its unit is written."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.words = max(1, layout.bits // WORD)
        self.shared = Names(alone=False)
        self.locals = {name: Names(alone=True) for name in program.templates}
        self.properties = _property_names(program)
        self.steps = [(t.tid, n) for t in program.threads for n in range(len(layout.places[t.template].boundaries))]
        self.traps: list[str] = []
        self._tables: dict[str, str] = {}
        self._facts: dict[str, Facts] = {}

    def facts(self, thread: Thread) -> Facts:
        """Return what is the same for all threads of a template."""
        if thread.template not in self._facts:
            template = self.program.template_of(thread.tid)
            loose = _loose(self.program, template, self.layout.locals[thread.tid])
            self._facts[thread.template] = (live_before(template.nodes), maybe_held(self.program, template), loose)
        return self._facts[thread.template]

    def preempts(self, cpu: int) -> bool:
        """Tell whether a softirq may come in on a CPU where another thread holds a lock."""
        for thread in self.program.threads:
            if thread.cpu == cpu and thread.kind != "softirq":
                nodes, held = self.program.template_of(thread.tid).nodes, self.facts(thread)[1]
                if any(n.boundary and not n.bh_off and held[i] for i, n in enumerate(nodes)):
                    return True
        return False

    def table(self, kind: str, values: Iterable[str], prefix: str) -> str:
        """Return the name of a constant array."""
        key = f"[] = {{{', '.join(values)}}}"
        for known, name in self._tables.items():
            if known.startswith(f"{kind} ") and known.endswith(key):
                return name
        name = f"{prefix}_{len(self._tables)}"
        self._tables[f"{kind} {name}{key}"] = name
        return name

    def trap(self, site: Site | None, what: str) -> int:
        """Return the number of a place at which something is watched."""
        text = f"{site.file}:{site.line}: {what}" if site is not None else what
        if text not in self.traps:
            self.traps.append(text)
        return self.traps.index(text) + 1

    def at(self, part: At) -> Code:
        """Return the code that tells whether a thread is at one of some nodes."""
        places = self.layout.places[self.program.threads[part.tid].template]
        numbers = sorted(places.number[n] for n in part.nodes if n in places.number)
        if not numbers or len(numbers) == len(places.boundaries):
            return number(int(bool(numbers)))
        here = f"at_{part.tid}(s)"
        if len(numbers) == 1:
            return Code(f"{here} == {numbers[0]}", COMPARE)
        bits = sum(1 << n for n in numbers)
        if len(places.boundaries) <= WORD:
            return Code(f"({unsigned(bits)} >> {here} & 1)")
        words = [unsigned(bits >> i & (1 << WORD) - 1) for i in range(0, len(places.boundaries), WORD)]
        name = self.table("uint64_t", words, "places")
        return Code(f"({name}[{here} / {WORD}] >> {here} % {WORD} & 1)")

    def tables(self) -> list[str]:
        """Return the constant arrays that were asked for."""
        return [f"static const {declared};" for declared in self._tables]


def _property_names(program: Program) -> list[str]:
    names = [*(p.name for p in program.properties), *(name for name, _ in program.builtin), "deadlock", "endless"]
    for template in program.templates.values():
        names += [n.instruction.property for n in template.nodes if isinstance(n.instruction, Fail)]
    return list(dict.fromkeys(names))


def _loose(program: Program, template: Template, packed: Iterable[str]) -> frozenset[str]:
    """Return the locals that no state holds and whose values may leave their domain: they may have any value."""
    declared = bounds_of(program, template)
    loose: set[str] = set()

    def bounds(part: Local | Read | Own) -> tuple[int, int]:
        return INT64 if isinstance(part, Local) and part.name in loose else declared(part)

    while True:
        before = len(loose)
        for node in template.nodes:
            match node.instruction:
                case Assign(Local(name), value):
                    low, high = interval(value, bounds, program.skb_bits)
                case Choose(name, count):
                    low, high = 0, count - 1
                case _:
                    continue
            domain = template.locals[name].domain
            if name not in packed and not domain.lo <= low <= high <= domain.hi:
                loose.add(name)
        if len(loose) == before:
            return frozenset(loose)


class ValueWriter(ExpressionWriter):
    """Writes expressions over a state: `state` is a pointer to it."""

    def __init__(self, unit: Unit, state: str) -> None:
        super().__init__(unit.program.skb_bits)
        self.unit, self.state = unit, state
        self.site: Site | None = None

    def bounds(self, part: Local | Read | Own) -> tuple[int, int]:
        """Return the bounds of a shared variable."""
        assert isinstance(part, Read), f"{part} has no value here"
        domain = self.unit.program.variables[part.var].domain
        return domain.lo, domain.hi

    def local(self, name: str) -> Code:
        """There are no locals where only states are looked at."""
        raise AssertionError(f"the local {name} has no value here")

    def read(self, place: Read) -> Code:
        """Return the code of a shared variable."""
        return Code(f"get_{self.unit.shared[place.var]}({self.state}{self.subscript(place)})")

    def subscript(self, place: Read) -> str:
        """Return what names the element of an array."""
        size = self.unit.program.variables[place.var].size
        if place.index is None or size is None:
            return ""
        return f", {self.index(place.index, size)}"

    def at(self, part: At) -> Code:
        """Return the code that tells whether a thread is at one of some places."""
        return self.unit.at(part)

    def table(self, values: tuple[int, ...]) -> str:
        """Return the name of a constant array."""
        return self.unit.table("int64_t", [str(number(v)) for v in values], "table")

    def trap(self) -> int:
        """Return the number of the line of the specification that is being written."""
        return self.unit.trap(self.site, "a value leaves its bounds")
