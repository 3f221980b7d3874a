"""`qmodel show`: what a model declares, and the steps of its threads."""

from __future__ import annotations

import click

from qmodel.cli import params as model_params
from qmodel.cli.errors import UsageError
from qmodel.cli.expectations import full_params
from qmodel.cli.running import Configuration, text_of
from qmodel.cli.specs import choose_variants, find
from qmodel.frontend.declarations import DEFAULT_SCENARIO, Spec, Variant
from qmodel.frontend.diagnostics import did_you_mean
from qmodel.passes.listing import listing


@click.command(
    "show",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("model")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
@click.option("--thread", metavar="NAME", help="The steps of a thread: lines, reads, writes, locks held.")
@click.option("--scenario", default=DEFAULT_SCENARIO, metavar="NAME", help="The initial state.")
@click.pass_context
def show(context: click.Context, /, *, model: str, variants: tuple[str, ...], thread: str | None, scenario: str) -> int:
    """Show what MODEL declares: variants, parameters, scenarios, expectations.

    With --thread, the steps of a thread of its variants (of the first one, where
    none is named).
    """
    specs = find(model)
    chosen = choose_variants(specs, variants)
    given = model_params.parse(context.args, [v for _, v in chosen], ["--variant", "--thread", "--scenario"])
    for _, variant in chosen:
        if scenario not in variant.scenarios:
            known = ", ".join(variant.scenarios)
            raise UsageError(f"{variant.model} has no scenario `{scenario}`; it has: {known}")
    if thread is None:
        click.echo("\n\n".join(_overview(spec, [v for s, v in chosen if s is spec]) for spec in specs))
        return 0
    for spec, variant in chosen if variants else chosen[:1]:
        program = Configuration(spec, variant, scenario, "sc", given).program()
        if thread not in program.templates:
            hint = did_you_mean(thread, program.templates, "")
            raise UsageError(f"no thread `{thread}` runs here; {hint or 'there is none'}")
        click.echo(f"{spec.model} {variant.name}: {thread}")
        click.echo(listing(program, program.templates[thread]))
    return 0


def _overview(spec: Spec, variants: list[Variant]) -> str:
    lines = [f"{spec.model} ({spec.shown})", *(f"  {line}".rstrip() for line in spec.doc.splitlines()), ""]
    known = {name: p for v in variants for name, p in v.params.items()}
    width = max((len(n) for n in known), default=0) + 2
    lines.append("parameters:")
    for name, param in known.items():
        default = {0: "false", 1: "true"}[int(bool(param.default))] if param.kind == "bool" else text_of(param.default)
        lines.append(f"  --{name.replace('_', '-'):{width}} {param.doc} (default {default})")
    scenarios = {name: s for v in variants for name, s in v.scenarios.items()}
    lines += ["", "scenarios:"]
    for name, scenario in scenarios.items():
        given = "".join(f", {n} = {text_of(v)}" for n, v in scenario.params.items())
        lines.append(f"  {name}: {scenario.doc}{given}")
    properties = {n: None for v in variants for n in v.property_names}
    lines += ["", "properties: " + ", ".join(properties)]
    for variant in variants:
        kernel = f"  [{variant.kernel}]" if str(variant.kernel) else ""
        lines += ["", f"{variant.name}:{kernel}", *(f"  {line}".rstrip() for line in variant.doc.splitlines())]
        for expectation in variant.expectations:
            what = f"refutes {', '.join(expectation.refuted)}" if expectation.refuted else "holds"
            memories = ",".join(expectation.memories)
            params = full_params(variant, expectation)
            settings = " ".join(f"{n}={text_of(v)}" for n, v in params.items() if n in {*expectation.params, "cpus"})
            place = "" if expectation.scenario == DEFAULT_SCENARIO else f" scenario={expectation.scenario}"
            lines.append(f"  {what}: {settings}{place} memory={memories}")
    return "\n".join(lines)
