"""A walk through the states by hand: what can be done here, what was done, what is violated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.engines.trace import Target, TraceWriter
from qmodel.ir.interpreter import Interpreter
from qmodel.ir.program import BOUND

if TYPE_CHECKING:
    from qmodel.ir.interpreter import Failure, Outcome, State
    from qmodel.ir.program import Program
    from qmodel.result import Trace


@dataclass(frozen=True, slots=True)
class Option:
    """A step that can be taken: thread, which of its alternatives, and what it does."""

    thread: int
    alternative: int
    outcome: Outcome


class Walk:
    """A way from the initial state on. Raises SetupError where the scenario violates a property by itself."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.interpreter = Interpreter(program)
        self.taken: list[Option] = []
        self._states = [self.interpreter.initial()]
        self.options = self._options()

    @property
    def state(self) -> State | None:
        """Where the walk is; None where its last step ended in an error of the language."""
        return self.taken[-1].outcome.state if self.taken else self._states[0]

    @property
    def last_state(self) -> State:
        """Where the walk is, or was before its last step ended in an error."""
        return self._states[-1]

    @property
    def state_before(self) -> State | None:
        """Where the walk was before its last step."""
        if not self.taken:
            return None
        return self._states[-1] if self.state is None else self._states[-2]

    @property
    def moves(self) -> list[tuple[int, int]]:
        """The steps as they are stored: thread and alternative."""
        return [(option.thread, option.alternative) for option in self.taken]

    def take(self, option: Option) -> None:
        """Take a step that can be taken here."""
        self.taken.append(option)
        if option.outcome.state is not None:
            self._states.append(option.outcome.state)
        self.options = self._options()

    def back(self) -> bool:
        """Take the last step back, and tell whether there was one."""
        if not self.taken:
            return False
        if self.taken.pop().outcome.state is not None:
            self._states.pop()
        self.options = self._options()
        return True

    def restart(self) -> None:
        """Go back to the initial state."""
        self.taken, self._states = [], self._states[:1]
        self.options = self._options()

    def _options(self) -> list[Option]:
        state = self.state
        return [] if state is None else [Option(*found) for found in self.interpreter.enabled(state)]

    # --- what is violated -------------------------------------------------------------------------------------------

    @property
    def failures(self) -> list[Failure]:
        """What the last step did wrong."""
        return self.taken[-1].outcome.failures if self.taken else []

    def violated(self) -> list[str]:
        """Return the properties that the last step or the state here violates."""
        found = [failure.property for failure in self.failures if failure.property != BOUND]
        state = self.state
        if state is not None:
            found += [p.name for p in self.program.properties if self.interpreter.violated(state, p)]
            ended = not self.options and bool(self.interpreter.unfinished(state))
            if ended or self.interpreter.waiting_cycle(state):
                found.append("deadlock")
        return list(dict.fromkeys(found))

    def trace(self, name: str) -> Trace:
        """Return the walk as a trace to the violation of a property here."""
        return TraceWriter(self.interpreter).replay(self.moves, Target(property=name))
