"""A state of a walk by hand, as a page of a terminal: memory, where each thread is, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.views.words import ascii_line, count, paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = """\
  NUMBER  take this step; several numbers are taken one after another
  b       back: undo the last step
  r       restart from the initial state
  p       properties: what each is here, and what was violated on the way
  s FILE  save the way as a counterexample, where a property is violated
  ?       this help
  q       quit, as at the end of the input; an empty line shows the page again
"""


@dataclass(frozen=True, slots=True)
class Value:
    """A variable as text; before: what it was before the last step, if that changed it."""

    name: str
    text: str
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A step that can be taken: its number, what it does, and what it violates."""

    number: int
    text: str
    violates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread: where it is, its locals, its steps; note: why it has none, such as `waits for root_lock`."""

    name: str
    place: str
    locals: str
    choices: tuple[Choice, ...]
    note: str = ""
    following: str = ""
    """The access that it waits to make."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that is to be said of a state: title, steps taken, the last one, memory, threads, violations."""

    title: str
    steps: int
    last: str
    values: tuple[Value, ...]
    lanes: tuple[Lane, ...]
    violations: tuple[tuple[str, str], ...]
    end: str = ""
    """Why nothing can be done here."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a property or a measure is here, and what was violated on the way."""

    name: str
    text: str


def page(page: Page, width: int) -> str:
    """Return the page of a state."""
    head = f"{page.title}: {count(page.steps, 'step')} taken"
    lines = paragraph(f"{head}; the last: {page.last}" if page.last else head, width, "    ", "")
    lines += ["", *_values(page.values, width)]
    if page.lanes:
        lines += ["", *(line for lane in page.lanes for line in _lane(lane, width))]
    for name, message in page.violations:
        lines += ["", *paragraph(f"violates {name}: {message}", width, "    ", "*** ")]
    if page.end:
        lines += ["", *paragraph(page.end, width)]
    return "\n".join(lines) + "\n"


def judgements(found: Sequence[Judgement], width: int) -> str:
    """Return what properties and measures are, one a line."""
    names = max((len(j.name) for j in found), default=0)
    lines: list[str] = []
    for judgement in found:
        first = f"  {judgement.name:{names}}  "
        lines += paragraph(judgement.text, width, " " * len(first), first)
    return "\n".join(lines) + "\n"


def _values(values: Sequence[Value], width: int) -> list[str]:
    """Return memory, one variable a line; a mark stands before what the last step changed."""
    names = max((len(v.name) for v in values), default=0)
    lines: list[str] = []
    for value in values:
        first = f"{' ' if value.before is None else '*'} {value.name:{names}}  "
        was = "" if value.before is None else f"  (was {value.before})"
        lines += paragraph(value.text + was, width, " " * len(first), first) or [first.rstrip()]
    return lines


def _lane(lane: Lane, width: int) -> list[str]:
    parts = [part for part in (lane.place and f"at {lane.place}", lane.locals) if part]
    head = "  ".join([lane.name, "; ".join(parts)]).rstrip()
    if not lane.choices and not lane.following:
        return paragraph(f"{head} {lane.note}" if parts else f"{lane.name}  {lane.note}", width, "      ", "")
    lines = paragraph(head, width, "      ", "")
    for choice in lane.choices:
        text = choice.text + (f"   <- violates {', '.join(choice.violates)}" if choice.violates else "")
        lines += paragraph(text, width, "      ", f"{choice.number:4}  ")
    if lane.following:
        lines += paragraph(f"{lane.following}   ({ascii_line(lane.note)})", width, "      ", "   -  ")
    return lines
