"""What a short picture of a trace can leave out.

- Lock-protected counting, unless the property reads it.
- A lock-protected read that finds what the variable was in the beginning, or what the thread itself put there; a
  lock-protected store that no other thread's read is shown to find.
- A lockless read of what no other thread ever changes in the trace.

Everything else stays: locks, lists, atomics, answers of the environment, commits of store buffers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmodel.ir.expr import reads_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.ir.program import Program
    from qmodel.result import Event, Step


def hush(
    program: Program, initial: dict[str, str], steps: Sequence[Step], judged: str, concerned: set[str]
) -> tuple[Step, ...]:
    """Return the steps with what can be left out marked.

    judged: the property or measure that the trace is for; concerned: other variables that its end is about.
    """
    return _Hush(program, initial, steps, judged, concerned).steps()


_LOCKLESS = (
    "READ_ONCE",
    "WRITE_ONCE",
    "data_race",
    "smp_load_acquire",
    "smp_store_release",
    "skb_queue_empty_lockless",
)
"""How the text of an access begins that is meant to be made without the lock."""


class _Hush:
    def __init__(
        self, program: Program, initial: dict[str, str], steps: Sequence[Step], judged: str, concerned: set[str]
    ) -> None:
        self.program, self.initial, self._steps = program, initial, steps
        conditions = {p.name: p.cond for p in program.properties} | {m.name: m.value for m in program.measures}
        self.read = concerned | (reads_of(conditions[judged]) if judged in conditions else set())
        self.events = [event for step in steps for event in step.events]
        self.quiet = [self._is_quiet(i) for i in range(len(self.events))]
        self.quiet = [quiet or self._is_unseen(i) for i, quiet in enumerate(self.quiet)]

    def steps(self) -> tuple[Step, ...]:
        """Return the steps, marked."""
        marks = iter(self.quiet)
        return tuple(
            replace(step, events=tuple(replace(e, quiet=next(marks)) for e in step.events)) for step in self._steps
        )

    def _is_quiet(self, position: int) -> bool:
        event = self.events[position]
        touched = event.writes or event.reads
        if event.quiet or not touched or event.kind not in {"load", "store"} or self.read & set(touched):
            return event.quiet
        if all(self._guarded(name) for name in touched) and not event.text.startswith(_LOCKLESS):
            counting = all(self.program.variables[name].domain.kind == "int" for name in touched)
            return counting or (event.kind == "load" and not self._finds_news(position))
        return event.kind == "load" and not any(self._changed_by_others(name, event) for name in event.reads)

    def _guarded(self, name: str) -> bool:
        variable = self.program.variables.get(name)
        return variable is not None and variable.guard is not None

    def _finds_news(self, position: int) -> bool:
        """Tell whether a read finds what another thread put there, and what was not there in the beginning."""
        event = self.events[position]
        for name in event.reads:
            last = self._last_change(name, position)
            if last is not None and self._other(self.events[last], event):
                values = {c.name: c.after for c in self.events[last].changes if c.name.partition("[")[0] == name}
                if any(self.initial.get(n) != v for n, v in values.items()):
                    return True
        return False

    def _is_unseen(self, position: int) -> bool:
        """Tell whether a lock-protected store is found by no read of another thread that is shown."""
        event = self.events[position]
        if event.kind != "store" or not event.writes or self.read & set(event.writes):
            return False
        if not all(self._guarded(name) for name in event.writes):
            return False
        for later in range(position + 1, len(self.events)):
            found = self.events[later]
            if not self.quiet[later] and found.kind == "load" and set(found.reads) & set(event.writes):
                return not self._other(found, event)
            if {c.name.partition("[")[0] for c in found.changes} & set(event.writes):
                return True
        return True

    def _last_change(self, name: str, before: int) -> int | None:
        for position in range(before - 1, -1, -1):
            if any(c.name.partition("[")[0] == name for c in self.events[position].changes):
                return position
        return None

    def _changed_by_others(self, name: str, event: Event) -> bool:
        return any(
            self._other(e, event) and any(c.name.partition("[")[0] == name for c in e.changes) for e in self.events
        )

    def _other(self, first: Event, second: Event) -> bool:
        """Tell whether two accesses are of different threads; a CPU's store buffer acts for every thread of it."""
        threads = self.program.threads
        a, b = threads[first.thread], threads[second.thread]
        if "buffer" in {a.kind, b.kind}:
            return a.cpu != b.cpu
        return a.tid != b.tid
