"""`qmodel bound`: the greatest value of every measure, with a shortest run to it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from qmodel import __version__
from qmodel.cli.configurations import WITH_PARAMETERS, chosen, configured, limited, searching, where
from qmodel.cli.errors import Exit, UsageError
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import run
from qmodel.engines.options import Options
from qmodel.frontend.declarations import name_argument
from qmodel.frontend.diagnostics import did_you_mean
from qmodel.result import Report, Run, Verdict
from qmodel.views import bound as view
from qmodel.views import json_view

if TYPE_CHECKING:
    from qmodel.frontend.declarations import Spec, Variant


@click.command("bound", context_settings=WITH_PARAMETERS)
@click.argument("model")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
@click.option("--measure", "names", multiple=True, metavar="NAME", help="Only this measure; may be repeated.")
@where
@searching
@limited
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--full", is_flag=True, help="Show every access in pictures.")
@click.pass_context
def bound(
    context: click.Context,
    /,
    *,
    model: str,
    variants: tuple[str, ...],
    names: tuple[str, ...],
    scenario: str,
    memory: str,
    engine: str,
    max_states: int | None,
    timeout: float | None,
    max_memory: int | None,
    as_json: bool,
    full: bool,
) -> int:
    """Find the greatest value of each @measure of MODEL over all reachable states.

    Each comes with a shortest run to it. Parameters of the model are options,
    as in `qmodel check`.

    Exit code: 0 every maximum is exact, 3 some is a lower bound ("at least").
    """
    configurations = configured(context, _measuring(chosen(context, model, variants), names), scenario, memory)
    runs: list[Run] = []
    with ProgressLine() as line:
        options = Options(max_states, timeout, max_memory, progress=line if line.active else None)
        for configuration in configurations:
            line.title = f"{configuration.spec.model} {configuration.variant.name}"
            found = run(configuration, "python" if engine == "auto" else engine, options)
            runs.append(_of_measures(found, names, configuration.command("bound")))
            if found.outcome.interrupted:
                break
    if as_json:
        click.echo(json_view.document(Report(__version__, tuple(runs))), nl=False)
    else:
        width = min(shutil.get_terminal_size((80, 24)).columns, 100)
        click.echo(view.report(runs, width=width, full=full), nl=False)
    if any(run.outcome.interrupted for run in runs):
        return Exit.INTERRUPTED
    return Exit.AS_EXPECTED if all(run.outcome.complete for run in runs) else Exit.INCONCLUSIVE


def _measuring(variants: list[tuple[Spec, Variant]], names: tuple[str, ...]) -> list[tuple[Spec, Variant]]:
    """Return the variants that have a measure, one of these names where some are given. Raises UsageError."""
    known = {v.name: [name_argument(d) for d in v.decorated if d.decorator == "measure"] for _, v in variants}
    every = list(dict.fromkeys(name for measures in known.values() for name in measures))
    model = variants[0][0].model
    if not every:
        raise UsageError(
            f"{model} has no measure; add one to the model: a function that is one `return` of a number, "
            'below @measure("name")'
        )
    for name in names:
        if name not in every:
            hint = did_you_mean(name, every, "")
            there = f"there are: {', '.join(every)}"
            raise UsageError(f"{model} has no measure `{name}`; {hint + ' ' if hint else ''}{there}")
    return [(spec, v) for spec, v in variants if set(known[v.name]) & set(names or every)]


def _of_measures(found: Run, names: tuple[str, ...], command: str) -> Run:
    """Return a run as one that was made for its measures.

    Where a property could not be decided, because a path ended in an error of the language or a store buffer was too
    short, there may be states beyond with a greater value: the run is not complete.
    """
    outcome = found.outcome
    open_ = next((p for p in outcome.properties if p.verdict is Verdict.INCONCLUSIVE), None)
    measures = tuple(m for m in outcome.measures if not names or m.name in names)
    complete = outcome.complete and open_ is None
    why = outcome.why or (open_.why if open_ else "")
    return replace(found, command=command, outcome=replace(outcome, complete=complete, why=why, measures=measures))
