"""From a trace to the rows of its picture: which events are shown, in whose column, and beside which changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from qmodel.result import Change, Event, ThreadInfo, Trace
from qmodel.views.words import ascii_line

LEFT_OUT = "..."


@dataclass(slots=True)
class Row:
    """One line of a picture: what stands in which lane (one event, or what is left out), and what it changed."""

    cells: dict[int, str]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Lane:
    """A column: the threads of one CPU that act in a trace, or one thread that runs on no CPU."""

    head: str
    now: int
    """The thread that acted last."""
    seen: set[int] = field(default_factory=set)


def lanes_and_rows(trace: Trace, threads: tuple[ThreadInfo, ...], *, full: bool) -> tuple[list[Lane], list[Row]]:
    """Return the columns of a trace, by CPU, and its rows in the order of its events."""
    keys = sorted({_lane_key(e.thread, threads) for e in trace.events})
    index = {key: number for number, key in enumerate(keys)}
    lanes: dict[int, Lane] = {}
    rows: list[Row] = []
    for event, text in _shown(trace.events, full=full):
        number = index[_lane_key(event.thread, threads)]
        lane = lanes.setdefault(number, Lane(_head(threads[event.thread]), event.thread, {event.thread}))
        if text == LEFT_OUT:
            if not rows or LEFT_OUT not in rows[-1].cells.values():
                rows.append(Row({}))
            rows[-1].cells[number] = LEFT_OUT
            continue
        if lane.now != event.thread:
            rows.append(Row({number: _switch(threads[event.thread], back=event.thread in lane.seen)}))
            lane.now = event.thread
            lane.seen.add(event.thread)
        rows.append(Row({number: text}, tuple(_note(c) for c in event.changes if _worth_a_note(event, c))))
    return [lanes[number] for number in sorted(lanes)], rows


def _lane_key(thread: int, threads: tuple[ThreadInfo, ...]) -> tuple[int, int]:
    """Threads of one CPU share a lane; those without a CPU come last, each in its own."""
    cpu = threads[thread].cpu
    return (0, cpu) if cpu >= 0 else (1, thread)


def _head(thread: ThreadInfo) -> str:
    return ascii_line(f"CPU{thread.cpu} ({thread.name})" if thread.cpu >= 0 else f"({thread.name})")


def _switch(thread: ThreadInfo, *, back: bool) -> str:
    if thread.kind == "softirq":
        return ascii_line(f"<softirq {thread.name}>")
    return ascii_line(f"<back to {thread.name}>" if back else f"<{thread.name}>")


def _shown(events: tuple[Event, ...], *, full: bool) -> Iterator[tuple[Event, str]]:
    """Yield each event with its text, or with `LEFT_OUT`. The last event is always shown: it is what goes wrong."""
    position = 0
    while position < len(events):
        event = events[position]
        unlock = None if full else _unlock_of(events, position)
        if unlock is not None:
            between = "; " if unlock == position + 1 else f" {LEFT_OUT} "
            yield event, ascii_line(event.text) + between + "unlock"
            position = unlock
        elif event.quiet and not full and position < len(events) - 1:
            yield event, LEFT_OUT
        else:
            yield event, ascii_line(event.text) or event.kind
        position += 1


def _unlock_of(events: tuple[Event, ...], position: int) -> int | None:
    """Return where a lock is given back, if nothing that is shown and no other thread comes between."""
    lock = events[position]
    if lock.kind != "lock" or lock.quiet:
        return None
    for number, event in enumerate(events[position + 1 :], position + 1):
        if event.thread != lock.thread:
            return None
        if event.kind == "unlock" and set(event.writes) & set(lock.writes):
            return number if number < len(events) - 1 else None
        if not event.quiet:
            return None
    return None


def _worth_a_note(event: Event, change: Change) -> bool:
    """Tell whether a change says more than its event's text does: a list's new content, or a new value not named."""
    if event.kind in ("lock", "unlock"):
        return False
    named = re.search(rf"(?<!\w){re.escape(change.after)}(?!\w)", event.text)
    return change.after.startswith("[") or not named


def _note(change: Change) -> str:
    return ascii_line(f"{change.name}: {change.after}")
