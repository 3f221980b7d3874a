"""`qmodel diff`: what two variants do differently, in their source, their steps and their verdicts."""

from __future__ import annotations

import ast
import shutil
import textwrap
from collections import Counter
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import click

from qmodel.cli.configurations import WITH_PARAMETERS, chosen, configured, limited, searching, where
from qmodel.cli.errors import Exit, UsageError
from qmodel.cli.expectations import exit_code
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import run
from qmodel.engines.options import Options
from qmodel.passes.listing import texts
from qmodel.views import diff as view

if TYPE_CHECKING:
    from qmodel.frontend.declarations import Variant
    from qmodel.frontend.source import Owned
    from qmodel.ir.program import Program, Template

_STATEMENTS = {"kernel", "expect", "model", "name"}
"""What a variant says of itself: no part of what it does."""

_Key = tuple[str, str]
"""A step: the innermost function, and its accesses as text."""


@click.command("diff", context_settings=WITH_PARAMETERS)
@click.argument("model")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@where
@searching
@limited
@click.option("--no-check", is_flag=True, help="Source and steps alone: search nothing.")
@click.pass_context
def diff(
    context: click.Context,
    /,
    *,
    model: str,
    first: str,
    second: str,
    scenario: str,
    memory: str,
    engine: str,
    max_states: int | None,
    timeout: float | None,
    max_memory: int | None,
    no_check: bool,
) -> int:
    """Show what the variants A and B of MODEL do differently.

    Their functions as a unified diff, which is the diff of the patch; the steps
    that only one of them has, thread by thread; and their verdicts side by side
    for the given parameters, which are options as in `qmodel check`.
    """
    pair = [chosen(context, model, [name])[0] for name in (first, second)]
    if first == second:
        raise UsageError(f"this compares {first} with itself; name two variants, which `qmodel show {model}` lists")
    configurations = configured(context, pair, scenario, memory)
    width = min(shutil.get_terminal_size((80, 24)).columns, 100)
    changes = source_changes(*(variant for _, variant in pair))
    click.echo(view.source(changes) or f"{first} and {second} have the same source.\n")
    programs = [configuration.program() for configuration in configurations]
    click.echo(view.steps(step_changes(programs[0], programs[1]), (first, second), width), nl=False)
    if no_check:
        return Exit.AS_EXPECTED
    runs = []
    with ProgressLine() as line:
        options = Options(max_states, timeout, max_memory, progress=line if line.active else None)
        for configuration in configurations:
            line.title = f"{configuration.spec.model} {configuration.variant.name}"
            runs.append(run(configuration, "python" if engine == "auto" else engine, options))
            if runs[-1].outcome.interrupted:
                return Exit.INTERRUPTED
    click.echo("\n" + view.verdicts(runs[0], runs[1], width), nl=False)
    return exit_code(runs)


def source_changes(first: Variant, second: Variant) -> list[tuple[view.Source | None, view.Source | None]]:
    """Return the functions and declarations that differ, as each of two variants has them."""
    old, new = first.cls.members, second.cls.members
    changes = []
    for name in dict.fromkeys([*old, *new]):
        before, after = _source(name, old.get(name)), _source(name, new.get(name))
        if name not in _STATEMENTS and (before and before.lines) != (after and after.lines):
            changes.append((before, after))
    return changes


def _source(name: str, owned: Owned | None) -> view.Source | None:
    if owned is None:
        return None
    node, file = owned.node, owned.module.file
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    start = min(part.lineno for part in (node, *decorators))
    lines = textwrap.dedent("\n".join(file.lines[start - 1 : node.end_lineno])).splitlines()
    return view.Source(f"{file.name} {owned.owner}.{name}", start, tuple(lines))


def step_changes(first: Program, second: Program) -> list[view.ThreadSteps]:
    """Return for each kind of thread the steps that only one of two programs has."""
    return [
        _thread(name, first.templates.get(name), second.templates.get(name))
        for name in dict.fromkeys([*first.templates, *second.templates])
    ]


def _thread(name: str, first: Template | None, second: Template | None) -> view.ThreadSteps:
    """Compare the steps of a thread. A function that is called twice is there twice: what counts is whether it is."""
    old, new = _steps(first), _steps(second)
    counts = Counter(key for key, _ in old), Counter(key for key, _ in new)
    both = counts[0].keys() & counts[1].keys()
    return view.ThreadSteps(
        name=name,
        counts=(len(old), len(new)),
        removed=_steps_but(old, both, counts[0]),
        added=_steps_but(new, both, counts[1]),
        repeated=tuple(dict.fromkeys(k[0] for k, _ in old if k in both and counts[0][k] != counts[1][k])),
        moved=[key for key, _ in old] != [key for key, _ in new],
    )


def _steps(template: Template | None) -> list[tuple[_Key, int]]:
    """Return the steps of a thread in the order of its code, each with its line."""
    if template is None:
        return []
    found = []
    for number, node in enumerate(template.nodes):
        if node.boundary and node.next:
            text = "; ".join(texts(template, number)) or node.site.source
            found.append(((node.site.function, text), node.site.line))
    return found


def _steps_but(
    steps: list[tuple[_Key, int]], left_out: AbstractSet[_Key], counts: Counter[_Key]
) -> tuple[view.StepText, ...]:
    first = dict(reversed(steps))
    keys = [key for key in dict.fromkeys(key for key, _ in steps) if key not in left_out]
    return tuple(view.StepText(key[1], f"{key[0]}:{first[key]}", counts[key]) for key in keys)
