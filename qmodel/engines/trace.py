"""Turning a way through the states into a trace that a person can read. It is run again, access by access, on the way.

What an engine found is thereby checked: a step that the interpreter cannot take is an error of the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from qmodel.engines import quiet, story
from qmodel.ir.expr import Read, reads_of
from qmodel.ir.text import thread_text, value_text
from qmodel.result import Change, Event, Step, ThreadInfo, Trace

if TYPE_CHECKING:
    from qmodel.ir.interpreter import Failure, Interpreter, Occurrence, Outcome, State
    from qmodel.ir.program import Node

NAMED_QUIET = {"local_bh_disable", "local_bh_enable", "skb_queue_empty", "skb_queue_len", "skb_peek", "softirq_entry"}
"""Primitives that a short picture leaves out."""


class ReplayError(Exception):
    """A step of a trace that cannot be taken, or a violation that does not come."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a trace shows: the violation of a property, or a measure at a value."""

    property: str = ""
    measure: str = ""
    value: int = 0


class TraceWriter:
    """Writes traces of one program."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.program = interpreter.program
        self._visible = [(n, v) for n, v in self.program.variables.items() if not v.ghost]

    def threads(self) -> tuple[ThreadInfo, ...]:
        """Return the threads of the program as a result names them."""
        return tuple(ThreadInfo(t.template, t.cpu, t.kind) for t in self.program.threads)

    def along(self, path: Sequence[tuple[State, int]], target: Target) -> Trace:
        """Return the trace of a way: each state with the thread that moves next; -1 where nothing is left to do.

        Raises ReplayError.
        """
        if path[0][0] != self.interpreter.initial():
            raise ReplayError("the trace does not start in the initial state")
        moves: list[tuple[int, int]] = []
        for (state, tid), following in zip(path, [*(s for s, _ in path[1:]), None], strict=True):
            if tid < 0:
                break
            moves.append((tid, self._alternative(state, tid, following, target)))
        return self.replay(moves, target)

    def _alternative(self, state: State, tid: int, following: State | None, target: Target) -> int:
        for number, outcome in enumerate(self.interpreter.outcomes(state, tid)):
            if following is not None and outcome.state == following:
                return number
            if following is None and any(f.property == target.property for f in outcome.failures):
                return number
        raise ReplayError(f"{thread_text(self.program, tid)} cannot take this step")

    def replay(self, moves: Sequence[tuple[int, int]], target: Target) -> Trace:
        """Run steps, each a thread and an alternative, and return their trace; check that the target is reached.

        Raises ReplayError.
        """
        state = self.interpreter.initial()
        initial = state
        steps: list[Step] = []
        message = ""
        concerned: set[str] = set()
        for position, (tid, alternative) in enumerate(moves):
            outcomes = self.interpreter.outcomes(state, tid) if 0 <= tid < len(self.program.threads) else []
            if not 0 <= alternative < len(outcomes):
                raise ReplayError(f"step {position + 1}: thread {tid} cannot take its alternative {alternative} here")
            outcome = outcomes[alternative]
            steps.append(Step(tid, alternative, tuple(self._events(tid, outcome))))
            if position == len(moves) - 1:
                failure = next((f for f in outcome.failures if f.property == target.property), None)
                if failure is not None:
                    concerned = self._concerned(tid, failure)
                    message = failure.message + self._other_access(state, tid, failure)
                    steps[-1] = self._with_failure(steps[-1], outcome, failure)
            if outcome.state is None:
                if position < len(moves) - 1:
                    raise ReplayError(f"step {position + 1} ends in an error, and the trace goes on")
                break
            state = outcome.state
        if not message:
            message = self._reached(state, target)
        if target.property == "deadlock":
            steps = self._with_waits(steps, state)
        begun = self._initial(initial)
        shown = quiet.hush(self.program, dict(begun), steps, target.property or target.measure, concerned)
        trace = Trace(shown, switches(steps, self.program.buffers), begun, ())
        return replace(trace, story=story.tell(self.program, trace, target.property, message))

    def _reached(self, state: State, target: Target) -> str:
        """Return how the last state is what the trace is for. Raises ReplayError where it is not."""
        interpreter = self.interpreter
        for measure in self.program.measures:
            if measure.name == target.measure:
                value = interpreter.evaluate(state, measure.value)
                if value != target.value or not interpreter.judged(state, measure.locks):
                    raise ReplayError(f"{measure.name} is {value} at the end of the trace, not {target.value}")
                return f"{measure.name} is {value}"
        for prop in self.program.properties:
            if prop.name == target.property and interpreter.violated(state, prop):
                return story.violated(self.program, state, interpreter, prop)
        if target.property == "deadlock":
            circle = interpreter.waiting_cycle(state)
            if circle:
                return story.circle(self.program, circle)
            unfinished = interpreter.unfinished(state)
            if unfinished and next(iter(interpreter.enabled(state)), None) is None:
                names = " and ".join(thread_text(self.program, t) for t in unfinished)
                verb = "has" if len(unfinished) == 1 else "have"
                return f"nothing can move any more, and {names} {verb} not ended"
        raise ReplayError(f"the trace does not violate `{target.property or target.measure}`")

    # --- events -----------------------------------------------------------------------------------------------------

    def _events(self, tid: int, outcome: Outcome) -> list[Event]:
        return [self._event(tid, occurrence) for occurrence in outcome.occurrences]

    def _event(self, tid: int, occurrence: Occurrence) -> Event:
        node = self.interpreter.program.template_of(tid).nodes[occurrence.node]
        assert node.label is not None
        reads, writes = self._touched(node, occurrence)
        return Event(
            thread=tid,
            function=node.site.function,
            text=occurrence.text,
            kind=node.label.kind,
            file=node.site.file,
            line=node.site.line,
            source=node.site.source,
            changes=self._changes(occurrence.before, occurrence.after),
            reads=reads,
            writes=writes,
            quiet=node.access is not None and node.access.name in NAMED_QUIET,
        )

    def _touched(self, node: Node, occurrence: Occurrence) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the variables that an access reads and writes."""
        access = node.access
        if access is None:
            return (), ()
        named: set[str] = set()
        if isinstance(access.place, Read):
            named.add(access.place.var)
        for arg in access.args:
            named |= reads_of(arg)
        visible = tuple(sorted(n for n in named if n in self.program.variables and not self.program.variables[n].ghost))
        changed = {c.name.partition("[")[0] for c in self._changes(occurrence.before, occurrence.after)}
        writing = access.name not in _READING
        return visible, tuple(n for n in visible if writing or n in changed)

    def _changes(self, before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...]) -> tuple[Change, ...]:
        found = []
        for name, variable in self._visible:
            index = self.interpreter.names.index(name)
            for position, (old, new) in enumerate(zip(before[index], after[index], strict=True)):
                if old != new:
                    shown = name if variable.size is None else f"{name}[{position}]"
                    texts = [value_text(self.program, variable.domain, v) for v in (old, new)]
                    found.append(Change(shown, *texts))
        return tuple(found)

    def _initial(self, state: State) -> tuple[tuple[str, str], ...]:
        found = []
        for name, variable in self._visible:
            for position, value in enumerate(self.interpreter.read(state, name)):
                shown = name if variable.size is None else f"{name}[{position}]"
                found.append((shown, value_text(self.program, variable.domain, value)))
        return tuple(found)

    def _with_failure(self, step: Step, outcome: Outcome, failure: Failure) -> Step:
        """Add to the last step the access that fails, unless it is the one that was printed last."""
        nodes = self.program.template_of(step.thread).nodes
        node = nodes[failure.node]
        if not failure.fatal and failure.property != "no-leak":
            return step  # the last access is what goes wrong
        if outcome.occurrences and nodes[outcome.occurrences[-1].node].site == node.site:
            return step
        site = node.site
        text = site.source.rstrip(":")
        event = Event(step.thread, site.function, text, "fail", site.file, site.line, site.source)
        return replace(step, events=(*step.events, event))

    def _other_access(self, state: State, tid: int, failure: Failure) -> str:
        """For a data race: say what another thread does, or can do next, to the same variable."""
        access = self.program.template_of(tid).nodes[failure.node].access
        if failure.property != "race" or access is None or not isinstance(access.place, Read):
            return ""
        found = ""
        for thread in self.program.threads:
            template = self.program.template_of(thread.tid)
            here = state.frames[thread.tid].node
            for number in (here, *range(len(template.nodes))):
                node = template.nodes[number]
                same = node.access is not None and isinstance(node.access.place, Read)
                if thread.tid == tid or not same or node.access.place.var != access.place.var:
                    continue
                verb = "is about to access" if number == here else "accesses"
                where = f"{node.site.function}(), {node.site.file}:{node.site.line}"
                text = f"; {thread_text(self.program, thread.tid)} {verb} it in {where}"
                if number == here:
                    return text
                found = found or text
                break
        return found

    def _concerned(self, tid: int, failure: Failure) -> set[str]:
        """Return the variables that a failed step was about."""
        node = self.program.template_of(tid).nodes[failure.node]
        place = node.access.place if node.access is not None else None
        return {place.var} if isinstance(place, Read) else set()

    def _with_waits(self, steps: list[Step], state: State) -> list[Step]:
        """Add to the last step of a deadlock what each thread in it waits for."""
        if not steps:
            return steps
        stuck = self.interpreter.waiting_cycle(state) or [(tid, "") for tid in self.interpreter.unfinished(state)]
        waits = []
        for tid, what in stuck:
            site = self.program.template_of(tid).nodes[state.frames[tid].node].site
            lock = what.partition("[")[0] in self.program.variables
            text = f"spin_lock(&{what})" if lock else "<interrupted>" if what else site.source
            waits.append(Event(tid, site.function, text, "wait", site.file, site.line, site.source, reads=(what,)))
        return [*steps[:-1], replace(steps[-1], events=(*steps[-1].events, *waits))]


_READING = {
    "load", "READ_ONCE", "data_race", "smp_load_acquire", "atomic_read", "test_bit", "skb_peek", "skb_queue_len",
    "skb_queue_empty", "spin_is_locked", "wait_until",
}  # fmt: skip


def switches(steps: Sequence[Step], buffers: Collection[int]) -> int:
    """Return how many successive steps are of different threads; commits of store buffers do not count."""
    return sum(a != b for a, b in pairwise(step.thread for step in steps if step.thread not in buffers))
