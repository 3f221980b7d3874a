"""Running one configuration: from a variant and parameters to a Run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmodel.cli.errors import UsageError
from qmodel.cli.expectations import as_expected, expected, is_exact
from qmodel.engines.options import Options
from qmodel.engines.python import engine as python
from qmodel.frontend.configure import configure, parameters
from qmodel.frontend.declarations import DEFAULT_SCENARIO
from qmodel.ir.interpreter import SetupError
from qmodel.passes import lower
from qmodel.result import Run

if TYPE_CHECKING:
    from qmodel.frontend.declarations import ParamValue, Spec, Variant
    from qmodel.ir.program import Program

ENGINES = {"python": python.run}
"""The engines by name."""


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

    def program(self) -> Program:
        """Compile and lower it. Raises SpecError, ParameterError."""
        return lower(configure(self.variant, self.scenario, self.given), self.memory)

    def command(self, verb: str = "check") -> str:
        """Return the command that runs it again."""
        known = self.spec.shown if "/" in self.spec.shown and not self.spec.shown.startswith("specs/") else self.spec.model
        words = ["qmodel", verb, known, "--variant", self.variant.name]
        if self.scenario != DEFAULT_SCENARIO:
            words += ["--scenario", self.scenario]
        if self.memory != "sc":
            words += ["--memory", self.memory]
        defaults = parameters(self.variant, self.variant.scenarios[self.scenario], {})
        for name, value in self.params.items():
            if value != defaults[name]:
                words += [f"--{name.replace('_', '-')}", text_of(value)]
        return " ".join(words)


def text_of(value: ParamValue) -> str:
    """Return a parameter as it is written on the command line."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def run(configuration: Configuration, engine: str, options: Options) -> Run:
    """Run a configuration. Raises SpecError, ParameterError, UsageError."""
    c = configuration
    try:
        outcome = ENGINES[engine](c.program(), options)
    except SetupError as error:
        where = error.node.site
        raise UsageError(
            f"{where.file}:{where.line}: the scenario `{c.scenario}` itself violates {error}; start from a sound state"
        ) from None
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
