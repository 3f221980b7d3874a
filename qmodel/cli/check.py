"""`qmodel check`: every variant of a model in one configuration."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from qmodel import __version__
from qmodel.cli.configurations import SECONDS, WITH_PARAMETERS, chosen, configured, size
from qmodel.cli.errors import Exit, UsageError
from qmodel.cli.expectations import exit_code
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import ENGINES, run
from qmodel.engines.options import Options
from qmodel.frontend.declarations import DEFAULT_SCENARIO, MEMORIES
from qmodel.result import Report, Run
from qmodel.views import json_view, kernel, text

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("check", context_settings=WITH_PARAMETERS)
@click.argument("model")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
@click.option("--scenario", default=DEFAULT_SCENARIO, metavar="NAME", show_default=True, help="The initial state.")
@click.option("--memory", type=click.Choice(MEMORIES), default="sc", show_default=True, help="The memory model.")
@click.option(
    "--engine", type=click.Choice(["auto", *ENGINES]), default="auto", show_default=True, help="What searches."
)
@click.option("--no-reduction", is_flag=True, help="One access, one step: the reference. There is no other mode yet.")
@click.option("--stop-first", is_flag=True, help="End at the depth of the first violation.")
@click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="End as inconclusive at N states.")
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="End as inconclusive after so long.")
@click.option(
    "--max-memory", callback=size, metavar="SIZE", help="End as inconclusive at this size (4G) of the process."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "kernel", "json"]),
    default="text",
    show_default=True,
    help="The report.",
)
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
    if as_json and form == "kernel":
        raise UsageError("--json is --format json, and the command has --format kernel as well; choose one")
    configurations = configured(context, chosen(context, model, variants), scenario, memory)
    runs: list[Run] = []
    interrupted = False
    with ProgressLine() as line:
        options = Options(max_states, timeout, max_memory, stop_first, line if line.active else None)
        try:
            for configuration in configurations:
                line.title = f"{configuration.spec.model} {configuration.variant.name}"
                runs.append(run(configuration, "python" if engine == "auto" else engine, options))
                if runs[-1].outcome.interrupted:
                    break
        except KeyboardInterrupt:  # between searches, or while a trace is written
            interrupted = True
    click.echo(rendered(runs, "json" if as_json else form, full=full), nl=False)
    return Exit.INTERRUPTED if interrupted else exit_code(runs)


def rendered(runs: Sequence[Run], form: str, *, full: bool = False, pictures: bool = True) -> str:
    """Return the report of some runs in a format."""
    report = Report(__version__, tuple(runs))
    if form == "json":
        return json_view.document(report)
    if form == "kernel":
        return kernel.pictures(report, full=full)
    width = min(shutil.get_terminal_size((80, 24)).columns, 100)
    return text.report(report, color=sys.stdout.isatty(), width=width, pictures=pictures, full=full)
