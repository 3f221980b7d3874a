"""Packing a state into one whole number: where each variable's bits are.

From the lowest bit: where each thread is (the number of its boundary), the shared variables, the locals. Locals that
never live at the same boundary share bits; the bits of a local that does not live are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.ir.flow import live_before
from qmodel.ir.interpreter import Frame, State

if TYPE_CHECKING:
    from qmodel.ir.program import Program, Template


@dataclass(frozen=True, slots=True)
class Field:
    """Bits of a state: from `shift`, `width` of them, holding a value minus `low`. Elements follow one another."""

    shift: int
    width: int
    low: int = 0
    size: int = 1

    @property
    def mask(self) -> int:
        """The bits of one element, at its lowest place."""
        return (1 << self.width) - 1

    def element(self, index: int) -> Field:
        """Return the bits of one element."""
        return Field(self.shift + self.width * index, self.width, self.low)

    def get(self, state: int) -> int:
        """Return the value in a state."""
        return (state >> self.shift & self.mask) + self.low

    def put(self, value: int) -> int:
        """Return the bits of a value."""
        return (value - self.low) << self.shift


@dataclass(frozen=True, slots=True)
class Places:
    """The boundaries of a template, by number, and the locals that live at each, by node."""

    boundaries: tuple[int, ...]
    live: dict[int, tuple[str, ...]]

    @property
    def number(self) -> dict[int, int]:
        """From node to boundary number."""
        return {node: i for i, node in enumerate(self.boundaries)}


class Layout:
    """Where everything is in a packed state of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.places = {name: _places(t) for name, t in program.templates.items()}
        at = 0
        self.counters: list[Field] = []
        for thread in program.threads:
            width = max(1, (len(self.places[thread.template].boundaries) - 1).bit_length())
            self.counters.append(Field(at, width))
            at += width
        self.shared: dict[str, Field] = {}
        for name, variable in program.variables.items():
            domain = variable.domain
            self.shared[name] = Field(at, domain.width, domain.lo, variable.size or 1)
            at += domain.width * (variable.size or 1)
        self.locals: list[dict[str, Field]] = []
        frames = {name: _frame(t, self.places[name]) for name, t in program.templates.items()}
        for thread in program.threads:
            fields, width = frames[thread.template]
            self.locals.append({n: Field(at + f.shift, f.width, f.low) for n, f in fields.items()})
            at += width
        self.bits = at

    def pack(self, state: State) -> int:
        """Return a state as a number."""
        packed = 0
        for name, values in zip(self.program.variables, state.shared, strict=True):
            field = self.shared[name]
            for index, value in enumerate(values):
                packed |= field.element(index).put(value)
        for tid, frame in enumerate(state.frames):
            places = self.places[self.program.threads[tid].template]
            packed |= self.counters[tid].put(places.number[frame.node])
            for name, value in frame.locals:
                packed |= self.locals[tid][name].put(value)
        return packed

    def unpack(self, packed: int) -> State:
        """Return the state that a number stands for."""
        shared = tuple(tuple(field.element(i).get(packed) for i in range(field.size)) for field in self.shared.values())
        frames = []
        for tid, thread in enumerate(self.program.threads):
            places = self.places[thread.template]
            node = places.boundaries[self.counters[tid].get(packed)]
            values = tuple((n, self.locals[tid][n].get(packed)) for n in places.live[node])
            frames.append(Frame(node, values))
        return State(shared, tuple(frames))


def _places(template: Template) -> Places:
    live = live_before(template.nodes)
    boundaries = tuple(i for i, n in enumerate(template.nodes) if n.boundary)
    return Places(boundaries, {i: tuple(sorted(live[i])) for i in boundaries})


def _frame(template: Template, places: Places) -> tuple[dict[str, Field], int]:
    """Give each local that lives at a boundary the lowest bits that no local has which lives with it."""
    together: dict[str, set[str]] = {}
    for names in places.live.values():
        for name in names:
            together.setdefault(name, set()).update(names)
    fields: dict[str, Field] = {}
    for name in sorted(together, key=lambda n: (-template.locals[n].domain.width, n)):
        domain = template.locals[name].domain
        taken = sorted((fields[o].shift, fields[o].shift + fields[o].width) for o in together[name] if o in fields)
        at = 0
        for start, end in taken:
            if at + domain.width <= start:
                break
            at = max(at, end)
        fields[name] = Field(at, domain.width, domain.lo)
    return fields, max((f.shift + f.width for f in fields.values()), default=0)
