"""`qmodel gate`: every expectation of every specification."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmodel.cli.check import rendered
from qmodel.cli.expectations import exit_code
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import Configuration, run, text_of
from qmodel.cli.specs import find, shipped_names
from qmodel.engines.options import Options
from qmodel.frontend.configure import parameters
from qmodel.frontend.declarations import DEFAULT_SCENARIO
from qmodel.result import Run, Verdict
from qmodel.views import counterexample, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmodel.frontend.declarations import Spec


@click.command("gate")
@click.argument("models", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--update", is_flag=True, help="Write the counterexample of every refuted expectation.")
@click.option(
    "--counterexamples", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("counterexamples"),
    show_default=True, help="Where --update writes.",
)  # fmt: skip
def gate(models: tuple[str, ...], *, as_json: bool, update: bool, folder: Path) -> int:
    """Run every expectation of MODELS (names or files; all that come with qmodel).

    Succeeds where every fixed variant is proved and every buggy one refuted.
    """
    configurations = [c for name in models or tuple(shipped_names()) for c in expectations(find(name))]
    runs: list[Run] = []
    with ProgressLine() as line:
        options = Options(progress=line if line.active else None)
        for number, configuration in enumerate(configurations):
            line.title = f"{number + 1}/{len(configurations)} {configuration.spec.model} {configuration.variant.name}"
            runs.append(run(configuration, "python", options))
            if runs[-1].outcome.interrupted:
                break
    if update:
        for path, content in counterexamples(runs, folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    click.echo(rendered(runs, "json" if as_json else "text", pictures=False), nl=False)
    return exit_code(runs)


def expectations(specs: Sequence[Spec]) -> Iterator[Configuration]:
    """Yield the configuration of every expectation; a variant that states none, in its default one."""
    for spec in specs:
        for variant in spec.variants:
            if not variant.expectations:
                yield Configuration(spec, variant, DEFAULT_SCENARIO, "sc", {})
            for expectation in variant.expectations:
                for memory in expectation.memories:
                    yield Configuration(spec, variant, expectation.scenario, memory, dict(expectation.params))


def counterexamples(runs: Sequence[Run], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of every property that was expected to be refuted and is: the steps as JSON, and the picture."""
    for result in runs:
        wanted = result.expected.properties if result.expected else ()
        for prop in result.outcome.properties:
            if prop.name in wanted and prop.verdict is Verdict.REFUTED:
                stem = folder / result.model / file_stem(result, prop.name)
                yield stem.with_name(stem.name + ".json"), counterexample.document(result, prop)
                yield stem.with_name(stem.name + ".txt"), kernel.picture(result, prop)


def file_stem(result: Run, prop: str) -> str:
    """Return the name of a counterexample's files: variant, scenario, parameters that are not the default, property."""
    specs = find(result.spec if result.spec.endswith(".py") and not result.spec.startswith("specs/") else result.model)
    variant = next(v for s in specs for v in s.variants if v.name == result.variant)
    defaults = parameters(variant, variant.scenarios[result.scenario], {})
    changed = [f"{n}-{text_of(v).replace(',', '-')}" for n, v in result.params if v != defaults[n]]
    scenario = [] if result.scenario == DEFAULT_SCENARIO else [result.scenario]
    memory = [] if result.memory == "sc" else [result.memory]
    return ".".join([result.variant, *scenario, *changed, *memory, prop])
