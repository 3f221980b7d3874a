"""From the words of a command line to what is to be run: variants of a model, with a value for every parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmodel.cli import params as model_params
from qmodel.cli.errors import UsageError
from qmodel.cli.running import ENGINES, Configuration
from qmodel.cli.specs import choose_variants, find
from qmodel.frontend.declarations import DEFAULT_SCENARIO, MEMORIES
from qmodel.frontend.diagnostics import SpecError

if TYPE_CHECKING:
    from qmodel.frontend.declarations import Spec, Variant
    from qmodel.frontend.diagnostics import Diagnostic

F = TypeVar("F", bound=Callable[..., Any])

WITH_PARAMETERS = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": ["-h", "--help"],
}
"""Settings of a command that leaves the parameters of the model to `parse`."""


_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)i?B?", re.IGNORECASE | re.ASCII)


def size(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Read a size in bytes: `512M`, `4G`."""
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if not found:
        raise click.BadParameter(f"{value} is no size; write 512M or 4G")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


class _Seconds(click.FloatRange):
    """A number of seconds, at least 0; what is no number (nan) would never be reached."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return number


SECONDS = _Seconds(min=0)


def where(function: F) -> F:
    """Add the options that say from which state and on which machine: --scenario, --memory."""
    memories = click.Choice(MEMORIES)
    for option in (
        click.option("--memory", type=memories, default="sc", show_default=True, help="The memory model."),
        click.option(
            "--scenario", metavar="NAME", default=DEFAULT_SCENARIO, show_default=True, help="Where it starts."
        ),
    ):
        function = option(function)
    return function


def searching(function: F) -> F:
    """Add the option that says what searches: --engine."""
    names = click.Choice(["auto", *ENGINES])
    return click.option("--engine", type=names, default="auto", show_default=True, help="What searches.")(function)


def limited(function: F) -> F:
    """Add the options that end a search as inconclusive: --max-states, --timeout, --max-memory."""
    for option in (
        click.option("--max-memory", callback=size, metavar="SIZE", help="End as inconclusive at this size (4G)."),
        click.option("--timeout", type=SECONDS, metavar="SECONDS", help="End as inconclusive after so long."),
        click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="End as inconclusive at N states."),
    ):
        function = option(function)
    return function


def chosen(context: click.Context, model: str, variants: Sequence[str]) -> list[tuple[Spec, Variant]]:
    """Return the variants of these names, all where none is named. Raises UsageError, SpecError."""
    if model.startswith("-"):
        usage = f"qmodel {context.command.name} MODEL {model} …"
        raise UsageError(f"{model} stands in the place of the model; parameters come behind it: {usage}")
    return choose_variants(find(model), tuple(variants))


def configured(
    context: click.Context, variants: Sequence[tuple[Spec, Variant]], scenario: str, memory: str
) -> list[Configuration]:
    """Return variants with the parameters that are left on the command line.

    Mistakes in any of them are told before anything runs. Raises UsageError, ParameterError, SpecError.
    """
    reserved = [option for p in context.command.params for option in p.opts if option.startswith("--")]
    given = model_params.parse(context.args, [variant for _, variant in variants], reserved)
    found = []
    for spec, variant in variants:
        if scenario not in variant.scenarios:
            known = ", ".join(variant.scenarios)
            raise UsageError(f"{variant.model} has no scenario `{scenario}`; it has: {known}")
        own = {name: value for name, value in given.items() if name in variant.params}
        found.append(Configuration(spec, variant, scenario, memory, own))
    refuse_mistakes(found)
    return found


def refuse_mistakes(configurations: Iterable[Configuration]) -> None:
    """Raise SpecError with every mistake in any of them, ParameterError."""
    mistakes: dict[Diagnostic, None] = {}
    for configuration in configurations:
        try:
            configuration.program()
        except SpecError as error:
            mistakes |= dict.fromkeys(error.diagnostics)
    if mistakes:
        raise SpecError(mistakes)
