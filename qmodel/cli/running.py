"""Running one configuration: from a variant and parameters to a Run."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.cli.errors import UsageError
from qmodel.cli.expectations import as_expected, expected, is_exact
from qmodel.engines.native import engine as native
from qmodel.engines.native.errors import NativeError
from qmodel.engines.options import Options
from qmodel.engines.python import engine as python
from qmodel.frontend.configure import configure, parameters
from qmodel.frontend.declarations import DEFAULT_SCENARIO
from qmodel.frontend.source import SHIPPED
from qmodel.ir.interpreter import SetupError
from qmodel.passes import lower
from qmodel.passes.memory import BUFFER
from qmodel.result import Outcome, Run

if TYPE_CHECKING:
    from qmodel.frontend.declarations import ParamValue, Spec, Variant
    from qmodel.ir.program import Program


def _native(program: Program, options: Options) -> Outcome:
    """Search in compiled C. Raises UsageError where that cannot be had here, or not for this model."""
    there = native.available()
    if not there.ok:
        raise UsageError(f"the native engine cannot be used here: {there.why}; use --engine python")
    try:
        return native.run(program, options)
    except NativeError as error:
        raise UsageError(f"the native engine cannot search this model: {error}; use --engine python") from None


ENGINES = {"python": python.run, "native": _native}
"""The engines by name."""
LONGEST_BUFFER = 16
"""Stores of a CPU that may be pending at once; a run that needs more is inconclusive."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is to be run: a variant, its scenario, parameters and memory model."""

    spec: Spec
    variant: Variant
    scenario: str
    memory: str
    given: dict[str, ParamValue]

    @property
    def params(self) -> dict[str, ParamValue]:
        """A value for every parameter. Raises ParameterError."""
        return parameters(self.variant, self.variant.scenarios[self.scenario], self.given)

    def program(self, buffer: int = BUFFER) -> Program:
        """Compile and lower it. Raises SpecError, ParameterError."""
        return lower(configure(self.variant, self.scenario, self.given), self.memory, buffer)

    def command(self, verb: str = "check") -> str:
        """Return the command that runs it again."""
        shipped = self.spec.path.resolve().parent == SHIPPED.resolve()
        known = self.spec.model if shipped else self.spec.shown
        words = ["qmodel", verb, known, "--variant", self.variant.name]
        if self.scenario != DEFAULT_SCENARIO:
            words += ["--scenario", self.scenario]
        if self.memory != "sc":
            words += ["--memory", self.memory]
        for name, value in self.changed().items():
            words += [f"--{name.replace('_', '-')}", text_of(value)]
        return " ".join(shlex.quote(word) for word in words)

    def changed(self) -> dict[str, ParamValue]:
        """The parameters that are not what they are by default, given the others."""
        scenario = self.variant.scenarios[self.scenario]
        plain = parameters(self.variant, scenario, {})
        simple = {n: v for n, v in self.params.items() if self.variant.params[n].kind != "packets"}
        defaults = parameters(self.variant, scenario, simple)
        return {n: v for n, v in self.params.items() if v != (plain if n in simple else defaults)[n]}


def _outcome(configuration: Configuration, search: Callable[[Program], Outcome]) -> Outcome:
    """Search a configuration, with longer store buffers for as long as they turn out too short."""
    buffer = BUFFER
    while True:
        outcome = search(configuration.program(buffer))
        if not outcome.buffer_full or outcome.interrupted or buffer >= LONGEST_BUFFER:
            return outcome
        buffer *= 2


def text_of(value: ParamValue) -> str:
    """Return a parameter as it is written on the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def run(configuration: Configuration, engine: str, options: Options) -> Run:
    """Run a configuration. Raises SpecError, ParameterError, UsageError."""
    return searched(configuration, lambda program: ENGINES[engine](program, options))


def searched(configuration: Configuration, search: Callable[[Program], Outcome]) -> Run:
    """Return what a search finds in a configuration. Raises SpecError, ParameterError, UsageError."""
    try:
        outcome = _outcome(configuration, search)
    except SetupError as error:
        raise unsound(configuration, error) from None
    return judged(configuration, outcome)


def unsound(configuration: Configuration, error: SetupError) -> UsageError:
    """Return what to tell a user whose scenario violates a property before anything runs."""
    where = error.node.site
    return UsageError(
        f"{where.file}:{where.line}: {error}; that is in {where.function}(), before the first step of scenario "
        f"`{configuration.scenario}`; start from a sound state"
    )


def judged(configuration: Configuration, outcome: Outcome) -> Run:
    """Return an outcome with what was asked and what is expected."""
    c = configuration
    wanted = expected(c.variant, c.scenario, c.memory, c.params)
    exact = is_exact(c.variant, c.scenario, c.memory, c.params)
    return Run(
        model=c.spec.model,
        variant=c.variant.name,
        doc=c.variant.doc,
        kernel=str(c.variant.kernel),
        scenario=c.scenario,
        scenario_doc=c.variant.scenarios[c.scenario].doc,
        params=tuple(c.params.items()),
        memory=c.memory,
        spec=c.spec.shown,
        command=c.command(),
        outcome=outcome,
        expected=wanted,
        as_expected=as_expected(outcome, wanted, exact=exact),
    )
