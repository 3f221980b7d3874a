"""`qmodel bench`: how fast the engine searches, and how much memory a state takes."""

from __future__ import annotations

import click

from qmodel.cli.running import Configuration, run
from qmodel.cli.specs import choose_variants, find
from qmodel.engines.options import Options

SIZES: tuple[dict[str, int | tuple[int, ...]], ...] = (
    {"cpus": 2, "packets": 2, "busy": 2},
    {"cpus": 3, "packets": (2, 1), "busy": 2},
    {"cpus": 3, "packets": (2, 2, 1), "busy": 2},
    {"cpus": 3, "packets": 2, "busy": 2},
)
"""Configurations of requeue's `head`, from some 10^4 to some 10^6 states."""


@click.command("bench")
@click.option(
    "--largest", type=click.IntRange(1, len(SIZES)), default=len(SIZES), show_default=True, help="How many sizes."
)
def bench(largest: int) -> int:
    """Print states a second and bytes a state on requeue, at growing sizes.

    Seconds are those of the search and its report, without compiling the model.
    """
    spec, variant = choose_variants(find("requeue"), ("head",))[0]
    click.echo(f"{'configuration':38} {'states':>10} {'seconds':>8} {'states/s':>9} {'bytes/state':>12}")
    for given in SIZES[:largest]:
        configuration = Configuration(spec, variant, "default", "sc", given)
        outcome = run(configuration, "python", Options()).outcome
        name = " ".join(f"{n}={v if isinstance(v, int) else ','.join(map(str, v))}" for n, v in given.items())
        memory = "-" if outcome.bytes_per_state is None else f"{outcome.bytes_per_state:.0f}"
        rate = outcome.states / max(outcome.seconds, 1e-9)
        click.echo(f"{name:38} {outcome.states:10,} {outcome.seconds:8.2f} {rate:9,.0f} {memory:>12}")
    return 0
