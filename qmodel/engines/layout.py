"""Packing a state into one whole number: where each variable's bits are.

From the lowest bit: where each thread is (the number of its boundary), the shared variables, the locals. Locals that
never live at the same boundary share bits; the bits of a local that does not live are 0.

Where the number is to be cut into machine words, everything is put where it fits, so that nothing crosses from one word
into the next.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.ir.flow import live_before
from qmodel.ir.interpreter import Frame, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.ir.program import Program, Template, Variable

_END = (sys.maxsize, sys.maxsize)
"""Behind all bits of a frame."""


@dataclass(frozen=True, slots=True)
class Field:
    """Bits of a state: from `shift`, `width` of them, holding a value minus `low`. Elements follow one another.

    row: how many of them do so before the next begins a new word of `word` bits; 0: all of them.
    """

    shift: int
    width: int
    low: int = 0
    size: int = 1
    row: int = 0
    word: int = 0

    @property
    def mask(self) -> int:
        """The bits of one element, at its lowest place."""
        return (1 << self.width) - 1

    def element(self, index: int) -> Field:
        """Return the bits of one element."""
        row, place = divmod(index, self.row) if self.row else (0, index)
        return Field(self.shift + self.word * row + self.width * place, self.width, self.low)

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
    """Where everything is in a packed state of a program. word: the bits of a machine word, 0 for one long number."""

    def __init__(self, program: Program, word: int = 0) -> None:
        self.program = program
        self.places = {name: _places(t) for name, t in program.templates.items()}
        frames = {name: _frame(t, self.places[name], word) for name, t in program.templates.items()}
        counters = [max(1, (len(self.places[t.template].boundaries) - 1).bit_length()) for t in program.threads]
        rows = [_row(v, word) for v in program.variables.values()]
        shared = [_span(v, row, word) for v, row in zip(program.variables.values(), rows, strict=True)]
        spans = [*counters, *shared, *(frames[t.template][1] for t in program.threads)]
        shifts, self.bits = _in_words(spans, word) if word else _in_a_row(spans)
        at = iter(shifts)
        self.counters = [Field(next(at), width) for width in counters]
        self.shared = {
            name: Field(next(at), v.domain.width, v.domain.lo, v.size or 1, row, word if row else 0)
            for (name, v), row in zip(program.variables.items(), rows, strict=True)
        }
        self.locals: list[dict[str, Field]] = []
        for thread in program.threads:
            shift = next(at)
            fields = frames[thread.template][0]
            self.locals.append({n: Field(shift + f.shift, f.width, f.low) for n, f in fields.items()})

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


def _in_a_row(spans: Sequence[int]) -> tuple[list[int], int]:
    """Return where each span of bits begins when they follow one another, and the bits of all."""
    shifts, at = [], 0
    for span in spans:
        shifts.append(at)
        at += span
    return shifts, at


def _in_words(spans: Sequence[int], word: int) -> tuple[list[int], int]:
    """Return where each span of bits begins when none crosses from word to word, and the bits of all words.

    The widest come first, each in the first word that has room. A span that is wider than a word begins with one.
    """
    shifts = [0] * len(spans)
    used: list[int] = []
    for number in sorted(range(len(spans)), key=lambda n: -spans[n]):
        span = spans[number]
        if span > word:
            shifts[number] = len(used) * word
            used += [word] * (span // word) + [span % word] * (span % word > 0)
            continue
        place = next((i for i, bits in enumerate(used) if bits + span <= word), len(used))
        if place == len(used):
            used.append(0)
        shifts[number] = place * word + used[place]
        used[place] += span
    return shifts, len(used) * word


def _row(variable: Variable, word: int) -> int:
    """Return how many elements of an array go into a word, or 0 where all of it does."""
    width = variable.domain.width
    return word // width if word and width <= word < width * (variable.size or 1) else 0


def _span(variable: Variable, row: int, word: int) -> int:
    """Return how many bits a variable takes."""
    width, size = variable.domain.width, variable.size or 1
    return width * size if not row else (size - 1) // row * word + ((size - 1) % row + 1) * width


def _frame(template: Template, places: Places, word: int) -> tuple[dict[str, Field], int]:
    """Give each local that lives at a boundary the lowest bits that no local has which lives with it."""
    together: dict[str, set[str]] = {}
    for names in places.live.values():
        for name in names:
            together.setdefault(name, set()).update(names)
    fields: dict[str, Field] = {}
    for name in sorted(together, key=lambda n: (-template.locals[n].domain.width, n)):
        domain = template.locals[name].domain
        taken = sorted((f.shift, f.shift + f.width) for o, f in fields.items() if o in together[name])
        at = 0
        for start, end in [*taken, _END]:
            if word and at % word + domain.width > word:
                at += word - at % word
            if at + domain.width <= start:
                break
            at = max(at, end)
        fields[name] = Field(at, domain.width, domain.lo)
    return fields, max((f.shift + f.width for f in fields.values()), default=0)
