"""Comparing what came out with what a specification says must come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.cli.errors import Exit
from qmodel.frontend.configure import parameters
from qmodel.result import Expected, Outcome, Run, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.frontend.declarations import Expectation, ParamValue, Variant


def expected(variant: Variant, scenario: str, memory: str, params: dict[str, ParamValue]) -> Expected | None:
    """Return what must come out of a configuration, or None where the specification does not say.

    An expectation for exactly this configuration decides. Else a refutation extends to greater values of parameters
    that grow, and a proof to smaller ones. A variant without expectations is expected to hold everywhere.
    """
    if not variant.expectations:
        return Expected(Verdict.HOLDS)
    extended: Expected | None = None
    for expectation in variant.expectations:
        if expectation.scenario != scenario or memory not in expectation.memories:
            continue
        stated = full_params(variant, expectation)
        found = Expected(Verdict.REFUTED if expectation.refuted else Verdict.HOLDS, expectation.refuted)
        if stated == params:
            return found
        smaller, greater = (stated, params) if expectation.refuted else (params, stated)
        if extended is None and _grows(variant, smaller, greater):
            extended = found
    return extended


def is_exact(variant: Variant, scenario: str, memory: str, params: dict[str, ParamValue]) -> bool:
    """Tell whether an expectation names exactly this configuration."""
    return any(
        e.scenario == scenario and memory in e.memories and full_params(variant, e) == params
        for e in variant.expectations
    )


def full_params(variant: Variant, expectation: Expectation) -> dict[str, ParamValue]:
    """Return a value for every parameter of an expectation."""
    return parameters(variant, variant.scenarios[expectation.scenario], expectation.params)


def _grows(variant: Variant, smaller: dict[str, ParamValue], greater: dict[str, ParamValue]) -> bool:
    for name, param in variant.params.items():
        low, high = smaller[name], greater[name]
        if low == high:
            continue
        if not param.grows:
            return False
        lows, highs = _tuple(low), _tuple(high)
        if len(lows) > len(highs) or any(a > b for a, b in zip(lows, highs, strict=False)):
            return False
    return True


def _tuple(value: ParamValue) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def as_expected(outcome: Outcome, wanted: Expected | None, *, exact: bool) -> bool | None:
    """Tell whether an outcome is as expected; None where nothing is expected, or where it is not decided.

    exact: the expectation names this configuration, so that a property which it does not name must not be refuted.
    """
    if wanted is None:
        return None
    refuted = {p.name for p in outcome.properties if p.verdict is Verdict.REFUTED}
    undecided = {p.name for p in outcome.properties if p.verdict is Verdict.INCONCLUSIVE}
    missing = set(wanted.properties) - refuted
    if missing - undecided or ((exact or not wanted.properties) and refuted - set(wanted.properties)):
        return False
    return None if missing or (not wanted.properties and undecided) else True


def exit_code(runs: Sequence[Run]) -> Exit:
    """Return the exit code of some runs: an unexpected verdict, or a refutation of which nothing is said, is 1."""
    if any(run.outcome.interrupted for run in runs):
        return Exit.INTERRUPTED
    if any(
        run.as_expected is False or (run.expected is None and run.outcome.verdict is Verdict.REFUTED) for run in runs
    ):
        return Exit.UNEXPECTED
    undecided = (run.outcome.verdict is Verdict.INCONCLUSIVE or run.expected is not None for run in runs)
    if any(run.as_expected is not True and open_ for run, open_ in zip(runs, undecided, strict=True)):
        return Exit.INCONCLUSIVE
    return Exit.AS_EXPECTED
