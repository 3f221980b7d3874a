"""What a lowered program means, one step at a time: the definition that every engine is measured against.

It is written to be read. Engines search; this explains what they found, and checks it: a trace is printed and replayed
by running it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from qmodel.ir.expr import OPERATORS, Apply, At, Const, Expr, Local, Lookup, Read
from qmodel.ir.flow import live_before
from qmodel.ir.own import bind
from qmodel.ir.program import Assign, Branch, Choose, Fail, Guard, Label, Node, Nop, Program, Property, Show, Thread
from qmodel.ir.text import value_text

LOCAL_STEPS = 100_000
"""A step that passes more nodes than this does not end."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a thread is, and its locals that may still be used."""

    node: int
    locals: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """All of memory, by variable, and the frame of each thread."""

    shared: tuple[tuple[int, ...], ...]
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An access that a step made: the node that was printed, its text, and memory before and after."""

    node: int
    text: str
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A property that a step violated, and how."""

    property: str
    message: str
    node: int
    fatal: bool


@dataclass(slots=True)
class Outcome:
    """One alternative of a step. state is None where a fatal failure ended it."""

    choices: tuple[int, ...]
    state: State | None = None
    occurrences: list[Occurrence] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    thread: Thread
    frames: tuple[Frame, ...]
    memory: list[list[int]]
    locals: dict[str, int]


class Interpreter:
    """Runs a lowered program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = tuple(program.variables)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._live = {name: live_before(t.nodes) for name, t in program.templates.items()}

    # --- states -----------------------------------------------------------------------------------------------------

    def initial(self) -> State:
        """Return the state in which everything begins. Raises SetupError where the scenario itself fails."""
        program = self.program
        memory = tuple(v.init for v in program.variables.values())
        alone = Thread(len(program.threads), "setup", "task", 0)
        state, failures = self._prelude(alone, program.setup.nodes, memory, ())
        if failures:
            raise SetupError(failures[0], program.setup.nodes[failures[0].node])
        frames: tuple[Frame, ...] = ()
        memory = state.shared
        for thread in program.threads:
            template = program.template_of(thread.tid)
            state, failures = self._prelude(thread, template.nodes, memory, frames)
            if failures:
                raise SetupError(failures[0], template.nodes[failures[0].node])
            memory, frames = state.shared, state.frames
        return State(memory, frames)

    def _prelude(
        self, thread: Thread, nodes: Sequence[Node], memory: tuple[tuple[int, ...], ...], frames: tuple[Frame, ...]
    ) -> tuple[State, list[Failure]]:
        """Run what a thread does before its first access, and add its frame."""
        if nodes[0].boundary:
            return State(memory, (*frames, Frame(0))), []
        outcome = Outcome(())
        run = _Run(thread, frames, [list(v) for v in memory], {})
        self._walk(run, nodes, 0, outcome)
        assert outcome.state is not None or outcome.failures
        return outcome.state or State(memory, frames), outcome.failures

    def read(self, state: State, name: str) -> tuple[int, ...]:
        """Return the values of a shared variable."""
        return state.shared[self._index[name]]

    # --- steps ------------------------------------------------------------------------------------------------------

    def outcomes(self, state: State, tid: int) -> list[Outcome]:
        """Return every alternative of a thread's next step, in order; none where it must wait or has ended."""
        thread = self.program.threads[tid]
        nodes = self.program.template_of(tid).nodes
        start = state.frames[tid].node
        if not nodes[start].next or self.waits_for(state, tid) is not None:
            return []
        results: list[Outcome] = []
        pending: list[tuple[int, ...]] = [()]
        while pending:
            outcome = Outcome(pending.pop())
            memory = [list(values) for values in state.shared]
            run = _Run(thread, state.frames, memory, dict(state.frames[tid].locals))
            more = self._walk(run, nodes, start, outcome)
            if more:
                pending += [(*outcome.choices, i) for i in reversed(range(more))]
            elif more == 0:
                results.append(outcome)
        return results

    def waits_for(self, state: State, tid: int) -> Guard | None:
        """Return the condition that a thread waits for, or None where it need not wait."""
        nodes = self.program.template_of(tid).nodes
        number = state.frames[tid].node
        run = _Run(
            self.program.threads[tid], state.frames, [list(v) for v in state.shared], dict(state.frames[tid].locals)
        )
        while isinstance(guard := nodes[number].instruction, Guard | Nop) and nodes[number].next:
            if isinstance(guard, Guard) and not self._value(run, guard.cond):
                return guard
            number = nodes[number].next[0]
            if nodes[number].boundary:
                break
        return None

    def _walk(self, run: _Run, nodes: Sequence[Node], start: int, outcome: Outcome) -> int | None:
        """Run a step to its end.

        Return 0, or the number of alternatives where a choice is still to be made, or None where it cannot be taken.
        """
        number, made = start, 0
        before = tuple(tuple(v) for v in run.memory)
        for _ in range(LOCAL_STEPS):
            node = nodes[number]
            following = node.next[0] if node.next else number
            match node.instruction:
                case Assign(Local(name), value):
                    run.locals[name] = self._value(run, value)
                case Assign(Read(name, index), value):
                    at = 0 if index is None else self._value(run, index)
                    run.memory[self._index[name]][at] = self._value(run, value)
                case Guard(cond):
                    if not self._value(run, cond):
                        return None
                case Branch(cond):
                    following = node.next[0] if self._value(run, cond) else node.next[1]
                case Choose(name, count):
                    if made == len(outcome.choices):
                        return count
                    run.locals[name] = outcome.choices[made]
                    made += 1
                case Fail(cond, name, message, fatal):
                    if self._value(run, cond):
                        outcome.failures.append(Failure(name, self._text(run, message), number, fatal))
                        if fatal:
                            return 0
            if node.label is not None:
                after = tuple(tuple(v) for v in run.memory)
                outcome.occurrences.append(Occurrence(number, self._label(run, node.label), before, after))
                before = after
            number = following
            if nodes[number].boundary:
                outcome.state = self._settled(run, number)
                return 0
        endless = "the step does not end: a loop touches no shared memory"
        outcome.failures.append(Failure("endless", endless, number, fatal=True))
        return 0

    def _settled(self, run: _Run, number: int) -> State:
        live = self._live.get(run.thread.template)
        kept = () if live is None else tuple((n, run.locals[n]) for n in sorted(live[number]))
        frames = list(run.frames)
        if run.thread.tid < len(frames):
            frames[run.thread.tid] = Frame(number, kept)
        elif run.thread.template != "setup":
            frames.append(Frame(number, kept))
        return State(tuple(tuple(v) for v in run.memory), tuple(frames))

    # --- values -----------------------------------------------------------------------------------------------------

    def _value(self, run: _Run, expr: Expr) -> int:
        match expr:
            case Const(value):
                return value
            case Local(name):
                return run.locals[name]
            case Read(name, index):
                return run.memory[self._index[name]][0 if index is None else self._value(run, index)]
            case Lookup(table, index):
                return table[self._value(run, index)]
            case At(tid, nodes):
                return int(run.frames[tid].node in nodes)
            case Apply("and", args):
                return int(all(self._value(run, a) for a in args))
            case Apply("or", args):
                return int(any(self._value(run, a) for a in args))
            case Apply("if", (cond, first, second)):
                return self._value(run, first if self._value(run, cond) else second)
            case Apply(op, args):
                return OPERATORS[op](self.program.skb_bits, tuple(self._value(run, a) for a in args))
            case _:
                return self._value(run, bind(self.program, run.thread, expr))

    def _label(self, run: _Run, label: Label) -> str:
        return self._text(run, label.parts)

    def _text(self, run: _Run, parts: Sequence[str | Show]) -> str:
        words = (
            part if isinstance(part, str) else value_text(self.program, part.domain, self._value(run, part.expr))
            for part in parts
        )
        return "".join(words)

    # --- properties -------------------------------------------------------------------------------------------------

    def evaluate(self, state: State, expr: Expr) -> int:
        """Return the value of an expression over shared variables in a state."""
        run = _Run(Thread(len(self.program.threads), "", "task", 0), state.frames, [list(v) for v in state.shared], {})
        return self._value(run, expr)

    def judged(self, state: State, locks: Sequence[Read]) -> bool:
        """Tell whether a property that these locks guard is judged in a state: all of them are free."""
        return all(self.evaluate(state, lock) == 0 for lock in locks)

    def violated(self, state: State, prop: Property) -> bool:
        """Tell whether a state violates a property."""
        if prop.kind == "quiescent" and not self.quiescent(state):
            return False
        return self.judged(state, prop.locks) and not self.evaluate(state, prop.cond)

    def quiescent(self, state: State) -> bool:
        """Tell whether everything has come to rest: tasks ended, softirqs and the environment rest, nothing pends."""
        for thread in self.program.threads:
            template = self.program.template_of(thread.tid)
            node = state.frames[thread.tid].node
            if node not in (template.ends if thread.kind == "task" else template.rests):
                return False
        return all(
            variable.rest is None or all(value == variable.rest for value in self.read(state, name))
            for name, variable in self.program.variables.items()
        )

    def unfinished(self, state: State) -> list[int]:
        """Return the tasks that have not ended."""
        return [
            t.tid
            for t in self.program.threads
            if t.kind == "task" and state.frames[t.tid].node not in self.program.template_of(t.tid).ends
        ]

    def waiting_cycle(self, state: State) -> list[tuple[int, str]]:
        """Return a circle of threads, each with what it waits for that the next one has; empty where there is none."""
        edges = {t.tid: e for t in self.program.threads if (e := self._waits_on(state, t.tid)) is not None}
        for start in edges:
            path: list[int] = []
            here = start
            while here in edges and here not in path:
                path.append(here)
                here = edges[here][0]
            if here in path:
                circle = path[path.index(here) :]
                first = circle.index(min(circle))
                return [(t, edges[t][1]) for t in circle[first:] + circle[:first]]
        return []

    def _waits_on(self, state: State, tid: int) -> tuple[int, str] | None:
        """Return the thread that a thread waits for, and what for: a lock, or the end of a softirq on its CPU."""
        guard = self.waits_for(state, tid)
        if guard is None:
            return None
        if guard.lock is not None:
            holder = self.evaluate_for(state, tid, guard.lock) - 1
            return (holder, self.lock_name(state, tid, guard.lock)) if holder >= 0 else None
        thread = self.program.threads[tid]
        if thread.kind == "softirq":
            return None
        for other in self.program.softirqs_on(thread.cpu):
            if state.frames[other].node not in self.program.template_of(other).rests:
                return other, f"CPU{thread.cpu}"
        return None

    def evaluate_for(self, state: State, tid: int, expr: Expr) -> int:
        """Return the value of an expression as a thread sees it."""
        run = _Run(
            self.program.threads[tid], state.frames, [list(v) for v in state.shared], dict(state.frames[tid].locals)
        )
        return self._value(run, expr)

    def lock_name(self, state: State, tid: int, lock: Read) -> str:
        """Return how a lock is called: `root_lock`, `locks[1]`."""
        return lock.var if lock.index is None else f"{lock.var}[{self.evaluate_for(state, tid, lock.index)}]"

    def enabled(self, state: State) -> Iterator[tuple[int, int, Outcome]]:
        """Yield every step that can be taken: thread, alternative, outcome."""
        for thread in self.program.threads:
            for alternative, outcome in enumerate(self.outcomes(state, thread.tid)):
                yield thread.tid, alternative, outcome


class SetupError(Exception):
    """A scenario that violates a property before anything runs."""

    def __init__(self, failure: Failure, node: Node) -> None:
        self.failure, self.node = failure, node
        super().__init__(f"{failure.property}: {failure.message}")
