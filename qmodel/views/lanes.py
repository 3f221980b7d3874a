"""From a trace to the rows of its picture: which events are shown, in whose column, and beside which changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from qmodel.result import Change, Event, ThreadInfo, Trace
from qmodel.views.words import ascii_line

_WAITS = "/* waits */"
_LOCKING = ("lock", "unlock")


@dataclass(frozen=True, slots=True)
class Row:
    """An event in its lane, and what it changed."""

    lane: int
    text: str
    notes: tuple[str, ...] = ()
    remark: str = ""
    """What may stand behind the text, if there is room."""
    joins: bool = False
    """It may stand behind the row above: one of them gives a lock back, the other takes one."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is to be drawn: the heads of the lanes, the rows in the order of the trace, and how many are left out."""

    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int


@dataclass(slots=True)
class _Lane:
    """A column: the threads of one CPU that act in a trace, or one thread that runs on no CPU."""

    head: str
    now: int | None
    """The thread that acted last; None where the head names nobody."""
    seen: set[int] = field(default_factory=set)


def arrange(trace: Trace, threads: tuple[ThreadInfo, ...], remark: str, *, full: bool) -> Picture:
    """Return the picture of a trace that ends in a remark. Only what has a row has a lane, in the order of the CPUs."""
    final = _final(trace.events)
    shown = _shown(trace.events, final, full=full)
    keys = sorted({_lane_key(e.thread, threads) for e, is_shown in zip(trace.events, shown, strict=True) if is_shown})
    index = {key: number for number, key in enumerate(keys)}
    lanes: dict[int, _Lane] = {}
    rows: list[Row] = []
    last: Event | None = None
    for position, (event, is_shown) in enumerate(zip(trace.events, shown, strict=True)):
        number = index.get(_lane_key(event.thread, threads))
        if number is None:
            continue
        thread = threads[event.thread]
        lane = lanes.setdefault(number, _first_in_lane(event, thread))
        if is_shown:
            if lane.now != event.thread and not _enters(event) and event.kind != "flush":
                rows.append(Row(number, _switch(thread, back=event.thread in lane.seen)))
            joins = not full and position != final and last is not None and _join(last, event)
            rows.append(_row(number, event, remark if position == final else "", joins=joins))
            if event.kind != "flush":  # the CPU's buffer acts beside its threads
                lane.now = event.thread
            last = event
        lane.seen.add(event.thread)
    return Picture(tuple(lanes[number].head for number in sorted(lanes)), tuple(rows), shown.count(False))


def _final(events: Sequence[Event]) -> int:
    """Return the event that a trace ends in: the last one, but for a quiet coming or going of softirqs behind it."""
    said = [n for n, event in enumerate(events) if not (event.quiet and event.kind == "softirq")]
    return said[-1] if said else len(events) - 1


def _shown(events: Sequence[Event], final: int, *, full: bool) -> list[bool]:
    """Tell of each event whether it is shown. The final one always is: it is what goes wrong.

    The entry of a softirq, quiet as it is, begins each run of which something is shown.
    """
    shown = [full or not event.quiet or n == final for n, event in enumerate(events)]
    acting: set[int] = set()
    for position in reversed(range(len(events))):
        event = events[position]
        if _enters(event):
            shown[position] = shown[position] or event.thread in acting
            acting.discard(event.thread)
        elif shown[position]:
            acting.add(event.thread)
    return shown


def _enters(event: Event) -> bool:
    """Tell whether a run of a softirq begins here."""
    return event.kind == "softirq" and event.text.startswith("<softirq")


def _lane_key(thread: int, threads: tuple[ThreadInfo, ...]) -> tuple[int, int]:
    """Threads of one CPU share a lane; those without a CPU come last, each in its own."""
    cpu = threads[thread].cpu
    return (0, cpu) if cpu >= 0 else (1, thread)


def _first_in_lane(event: Event, thread: ThreadInfo) -> _Lane:
    """Return a lane that is named after the thread that acts first, unless a row of its own will name it."""
    if thread.cpu < 0:
        return _Lane(ascii_line(f"({thread.name})"), event.thread)
    if _enters(event):
        return _Lane(f"CPU{thread.cpu}", None)
    return _Lane(ascii_line(f"CPU{thread.cpu} ({thread.name})"), event.thread)


def _switch(thread: ThreadInfo, *, back: bool) -> str:
    if thread.kind == "softirq":
        return ascii_line(f"<softirq {thread.name}>")
    return ascii_line(f"<back to {thread.name}>" if back else f"<{thread.name}>")


def _row(lane: int, event: Event, remark: str, *, joins: bool) -> Row:
    text = ascii_line(event.text) or event.kind
    notes = tuple(_note(change) for change in event.changes if _worth_a_note(event, change))
    if event.kind == "wait":
        remark = "" if text.startswith("waits") else _WAITS
    return Row(lane, text, notes, "" if "/*" in text else ascii_line(remark), joins)


def _join(last: Event, event: Event) -> bool:
    """Tell whether one thread gives a lock back and takes another, or takes one and gives it back. No answer is given.

    Where a lock is given back and taken again, a section ends and the next begins: that is seen better in two rows.
    """
    if last.thread != event.thread or " = " in last.text + event.text:
        return False
    match last.kind, event.kind:
        case "lock", "unlock":
            return True
        case "unlock", "lock":
            return _argument(last) != _argument(event)
    return False


def _argument(event: Event) -> str:
    return event.text.partition("(")[2]


def _worth_a_note(event: Event, change: Change) -> bool:
    """Tell whether a change says more than its event's text does: a list's new content, or a new value not named."""
    if event.kind in _LOCKING:
        return False
    named = re.search(rf"(?<!\w){re.escape(change.after)}(?!\w)", event.text)
    return change.after.startswith("[") or not named


def _note(change: Change) -> str:
    return ascii_line(f"{change.name}: {change.after}")
