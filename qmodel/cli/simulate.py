"""`qmodel simulate`: random walks, where a state space is too large to be searched."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from qmodel import __version__
from qmodel.cli.configurations import WITH_PARAMETERS, chosen, configured, limited, where
from qmodel.cli.expectations import exit_code
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import searched
from qmodel.engines.options import Options
from qmodel.engines.python import simulate as engine
from qmodel.engines.python.simulate import Walks
from qmodel.result import Report, Run
from qmodel.views import json_view
from qmodel.views import simulation as view

if TYPE_CHECKING:
    from qmodel.engines.options import Progress

_POSITIVE = click.IntRange(min=1)


@click.command("simulate", context_settings=WITH_PARAMETERS)
@click.argument("model")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
@click.option("--walks", type=_POSITIVE, default=1000, metavar="N", show_default=True, help="How many walks.")
@click.option("--steps", type=_POSITIVE, default=1000, metavar="N", show_default=True, help="Steps of a walk at most.")
@click.option("--seed", type=int, default=0, metavar="N", show_default=True, help="Another seed, other walks.")
@where
@click.option("--stop-first", is_flag=True, help="End with the first walk that violates a property.")
@limited
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--full", is_flag=True, help="Show every access in pictures.")
@click.pass_context
def simulate(
    context: click.Context,
    /,
    *,
    model: str,
    variants: tuple[str, ...],
    walks: int,
    steps: int,
    seed: int,
    scenario: str,
    memory: str,
    stop_first: bool,
    max_states: int | None,
    timeout: float | None,
    max_memory: int | None,
    as_json: bool,
    full: bool,
) -> int:
    """Walk at random through the states of every variant of MODEL.

    Finds violations where there are too many states for `qmodel check`, and
    proves nothing: without a violation the verdict is inconclusive. The same
    seed gives the same walks. Parameters of the model are options.
    """
    configurations = configured(context, chosen(context, model, variants), scenario, memory)
    runs: list[Run] = []
    with ProgressLine() as line:
        for configuration in configurations:
            name = f"{configuration.spec.model} {configuration.variant.name}"

            def progress(told: Progress, name: str = name) -> None:
                line.title = f"{name}: walk {walks - told.frontier + 1:,} of {walks:,}"
                line(told)

            options = Options(max_states, timeout, max_memory, stop_first, progress if line.active else None)
            found = searched(configuration, partial(engine.run, walks=Walks(walks, steps, seed), options=options))
            runs.append(replace(found, command=configuration.command("simulate")))
            if runs[-1].outcome.interrupted:
                break
    if as_json:
        click.echo(json_view.document(Report(__version__, tuple(runs))), nl=False)
    else:
        width = min(shutil.get_terminal_size((80, 24)).columns, 100)
        click.echo(view.report(runs, width=width, full=full), nl=False)
    return exit_code(runs)
