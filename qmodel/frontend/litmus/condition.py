"""What a litmus test asks of its final states: a proposition over registers and variables, printed as herd7 does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A register of a thread, or (thread: None) a shared variable."""

    thread: int | None
    name: str

    @property
    def key(self) -> str:
        """The name within a program and in reports: `0:r1`, `x`."""
        return self.name if self.thread is None else f"{self.thread}:{self.name}"

    @property
    def order(self) -> tuple[bool, int, str]:
        """What locations are sorted by: registers by thread, then variables."""
        return self.thread is None, self.thread or 0, self.name

    def __str__(self) -> str:
        return f"[{self.name}]" if self.thread is None else self.key


Values = Mapping[Location, int]
"""A final state: what is looked at, with its value."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A location has a value, or the same value as another one."""

    location: Location
    value: int | Location


@dataclass(frozen=True, slots=True)
class Not:
    """A proposition does not hold."""

    part: Proposition


@dataclass(frozen=True, slots=True)
class And:
    """All hold; without parts: true."""

    parts: tuple[Proposition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of them holds; without parts: false."""

    parts: tuple[Proposition, ...]


@dataclass(frozen=True, slots=True)
class Implies:
    """Where the first holds, the second does."""

    first: Proposition
    second: Proposition


Proposition = Atom | Not | And | Or | Implies


def holds(proposition: Proposition, values: Values) -> bool:
    """Tell whether a proposition holds in a final state."""
    match proposition:
        case Atom(location, value):
            return values[location] == (values[value] if isinstance(value, Location) else value)
        case Not(part):
            return not holds(part, values)
        case And(parts):
            return all(holds(part, values) for part in parts)
        case Or(parts):
            return any(holds(part, values) for part in parts)
        case Implies(first, second):
            return not holds(first, values) or holds(second, values)


def locations(proposition: Proposition) -> Iterator[Location]:
    """Yield every location that a proposition names."""
    match proposition:
        case Atom(location, value):
            yield location
            if isinstance(value, Location):
                yield value
        case Not(part):
            yield from locations(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from locations(part)
        case Implies(first, second):
            yield from locations(first)
            yield from locations(second)


def text(proposition: Proposition, within: type | None = None) -> str:
    """Return a proposition as herd7 prints it; within: what it is a part of."""
    match proposition:
        case Atom(location, value):
            return f"{location}={value}"
        case Not(part):
            return f"not ({text(part)})"
        case And(()):
            return "true"
        case Or(()):
            return "false"
        case And(parts):
            words = r" /\ ".join(text(p, And) for p in parts)
            return f"({words})" if within is Implies else words
        case Or(parts):
            words = r" \/ ".join(text(p, Or) for p in parts)
            return f"({words})" if within in {And, Implies} else words
        case Implies(first, second):
            before = f"({text(first)})" if isinstance(first, Implies) else text(first, Implies)
            words = f"{before} => {text(second, Implies)}"
            return f"({words})" if within in {And, Or} else words
