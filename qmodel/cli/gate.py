"""`qmodel gate`: every expectation of every specification."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmodel.cli.check import rendered
from qmodel.cli.configurations import refuse_mistakes
from qmodel.cli.errors import Exit
from qmodel.cli.expectations import exit_code
from qmodel.cli.progress import ProgressLine
from qmodel.cli.running import Configuration, run, text_of
from qmodel.cli.specs import find, shipped_names
from qmodel.engines.options import Options
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
    refuse_mistakes({(c.variant.cls.name, c.scenario, c.spec.shown): c for c in configurations}.values())
    done: list[tuple[Configuration, Run]] = []
    interrupted = False
    with ProgressLine() as line:
        options = Options(progress=line if line.active else None)
        try:
            for number, configuration in enumerate(configurations):
                place = f"{number + 1}/{len(configurations)}"
                line.title = f"{place} {configuration.spec.model} {configuration.variant.name}"
                done.append((configuration, run(configuration, "python", options)))
                if done[-1][1].outcome.interrupted:
                    break
        except KeyboardInterrupt:  # between searches, or while a trace is written
            interrupted = True
    runs = [result for _, result in done]
    click.echo(rendered(runs, "json" if as_json else "text", pictures=False), nl=False)
    unused = [] if interrupted or as_json else never_taken(done)
    if unused:
        click.echo("\nsteps that no run has taken: what stands there was never checked")
        click.echo("\n".join(f"    {place}" for place in unused))
    if update:
        for path, content in counterexamples(done, folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    if interrupted:
        return Exit.INTERRUPTED
    return exit_code(runs) or (Exit.UNEXPECTED if never_taken(done) else Exit.AS_EXPECTED)


def never_taken(done: Sequence[tuple[Configuration, Run]]) -> list[str]:
    """Return the steps of each model that none of its runs has taken; none where a search was not complete."""
    if any(not result.outcome.complete for _, result in done):
        return []
    taken: dict[tuple[str, str], bool] = {}
    for _, result in done:
        for place in result.outcome.places:
            key = (result.model, f"{place.file}:{place.line}: {place.function}(): {place.source}")
            taken[key] = taken.get(key, False) or place.taken
    return [f"{model}: {text}" for (model, text), was in taken.items() if not was]


def expectations(specs: Sequence[Spec]) -> Iterator[Configuration]:
    """Yield the configuration of every expectation; a variant that states none, in its default one."""
    for spec in specs:
        for variant in spec.variants:
            if not variant.expectations:
                yield Configuration(spec, variant, DEFAULT_SCENARIO, "sc", {})
            for expectation in variant.expectations:
                for memory in expectation.memories:
                    yield Configuration(spec, variant, expectation.scenario, memory, dict(expectation.params))


def counterexamples(done: Sequence[tuple[Configuration, Run]], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of every property that was expected to be refuted and is: the steps as JSON, and the picture."""
    for configuration, result in done:
        wanted = result.expected.properties if result.expected else ()
        for prop in result.outcome.properties:
            if prop.name in wanted and prop.verdict is Verdict.REFUTED:
                stem = folder / result.model / file_stem(configuration, prop.name)
                yield stem.with_name(stem.name + ".json"), counterexample.document(result, prop)
                yield stem.with_name(stem.name + ".txt"), kernel.picture(result, prop)


def file_stem(configuration: Configuration, prop: str) -> str:
    """Return the name of a counterexample's files: variant, scenario, parameters that are not the default, property."""
    changed = [f"{name}-{text_of(value).replace(',', '-')}" for name, value in configuration.changed().items()]
    scenario = [] if configuration.scenario == DEFAULT_SCENARIO else [configuration.scenario.replace(" ", "-")]
    memory = [] if configuration.memory == "sc" else [configuration.memory]
    return ".".join([configuration.variant.name, *scenario, *changed, *memory, prop])
