"""A trace, one access at a time: where it is, what was done, what memory holds now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.views.words import ascii_line, paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.result import ThreadInfo, Trace

_WIDTH = 78
_AROUND = 6


def page(trace: Trace, threads: Sequence[ThreadInfo], position: int) -> str:
    """Return the page after `position` accesses of a trace: the accesses around, and every shared variable."""
    events = trace.events
    values = dict(trace.initial)
    changed: set[str] = set()
    for number, event in enumerate(events[:position]):
        for change in event.changes:
            values[change.name] = change.after
            if number == position - 1:
                changed.add(change.name)
    lines = [f"access {position} of {len(events)}    space: on   b: back   q: quit", ""]
    first = max(0, position - _AROUND)
    for number, event in enumerate(events[first : position + 3], first):
        thread = threads[event.thread]
        mark = ">" if number == position - 1 else " "
        lines.append(ascii_line(f"{mark} CPU{thread.cpu} {event.function}(): {event.text}")[:_WIDTH])
    lines.append("")
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        lines.append(ascii_line(f"{'*' if name in changed else ' '} {name:{width}}  {value}")[:_WIDTH])
    if 0 < position <= len(events):
        event = events[position - 1]
        lines += ["", ascii_line(f"{event.file}:{event.line}: {event.source}")[:_WIDTH]]
    if position == len(events):
        lines += ["", *paragraph(" ".join(trace.story), _WIDTH)]
    return "\n".join(lines)
