"""`qmodel check`: every variant of a model in one configuration."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

import click

from qmodel import __version__
from qmodel.cli import params as model_params
from qmodel.cli.errors import UsageError
from qmodel.cli.expectations import exit_code
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import ENGINES, Configuration, run
from qmodel.cli.specs import choose_variants, find
from qmodel.engines.options import Options
from qmodel.frontend.declarations import DEFAULT_SCENARIO, MEMORIES
from qmodel.result import Report, Run
from qmodel.views import json_view, kernel, text

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


def size(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Read a size in bytes: `512M`, `4G`."""
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if not found:
        raise click.BadParameter(f"{value} is no size; write 512M or 4G")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


@click.command(
    "check", context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": ["-h", "--help"]}
)
@click.argument("model")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
@click.option("--scenario", default=DEFAULT_SCENARIO, metavar="NAME", show_default=True, help="The initial state.")
@click.option("--memory", type=click.Choice(MEMORIES), default="sc", show_default=True, help="The memory model.")
@click.option("--engine", type=click.Choice(["auto", *ENGINES]), default="auto", show_default=True, help="What searches.")
@click.option("--no-reduction", is_flag=True, help="One access, one step: the reference. There is no other mode yet.")
@click.option("--stop-first", is_flag=True, help="End at the depth of the first violation.")
@click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="End as inconclusive at N states.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="End as inconclusive after so long.")
@click.option("--max-memory", callback=size, metavar="SIZE", help="End as inconclusive at this size (4G) of the process.")
@click.option("--format", "form", type=click.Choice(["text", "kernel", "json"]), default="text", show_default=True, help="The report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--full", is_flag=True, help="Show every access in pictures.")
@click.pass_context
def check(
    context: click.Context,
    /,
    *,
    model: str,
    variants: tuple[str, ...],
    scenario: str,
    memory: str,
    engine: str,
    no_reduction: bool,
    stop_first: bool,
    max_states: int | None,
    timeout: float | None,
    max_memory: int | None,
    form: str,
    as_json: bool,
    full: bool,
) -> int:
    """Check every variant of MODEL: a name that `qmodel list` shows, or a file.

    Every parameter of the model is an option of its own, for example --cpus 3
    --packets 2,1 --stop; `qmodel show MODEL` lists them.
    """
    del no_reduction  # the only mode that there is
    chosen = choose_variants(find(model), variants)
    reserved = [option for p in check.params for option in p.opts if option.startswith("--")]
    given = model_params.parse(context.args, [variant for _, variant in chosen], reserved)
    configurations = []
    for spec, variant in chosen:
        if scenario not in variant.scenarios:
            known = ", ".join(variant.scenarios)
            raise UsageError(f"{variant.model} has no scenario `{scenario}`; it has: {known}")
        configurations.append(Configuration(spec, variant, scenario, memory, given))
    for configuration in configurations:
        configuration.program()  # mistakes in any variant are told before the first search
    runs: list[Run] = []
    with ProgressLine() as line:
        options = Options(max_states, timeout, max_memory, stop_first, line if line.active else None)
        for configuration in configurations:
            line.title = f"{configuration.spec.model} {configuration.variant.name}"
            runs.append(run(configuration, "python" if engine == "auto" else engine, options))
            if runs[-1].outcome.interrupted:
                break
    click.echo(rendered(runs, "json" if as_json else form, full=full), nl=False)
    return exit_code(runs)


def rendered(runs: Sequence[Run], form: str, *, full: bool = False, pictures: bool = True) -> str:
    """Return the report of some runs in a format."""
    report = Report(__version__, tuple(runs))
    if form == "json":
        return json_view.document(report)
    if form == "kernel":
        return kernel.pictures(report, full=full)
    width = min(shutil.get_terminal_size((80, 24)).columns, 100)
    return text.report(report, color=sys.stdout.isatty(), width=width, pictures=pictures, full=full)
