"""Values for the parameters of a variant: what is given, else what the scenario says, else the default."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from qmodel.frontend.constants import evaluate
from qmodel.frontend.diagnostics import did_you_mean

if TYPE_CHECKING:
    from qmodel.frontend.declarations import ParamInfo, ParamValue, ScenarioInfo, Variant


MOST_THREADS = 64
"""Threads, and so CPUs and flows, that a model may have: more than could ever be searched."""


class ParameterError(ValueError):
    """A parameter that does not exist, or a value that it cannot have. The text says what there is."""


def parameters(variant: Variant, scenario: ScenarioInfo, given: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return a value for every parameter: what is given, else the scenario's, else the default.

    A per-CPU parameter becomes a tuple with one number a flow. Raises ParameterError, SpecError.
    """
    for name in given:
        if name not in variant.params:
            known = ", ".join(variant.params)
            hint = did_you_mean(name, variant.params, "")
            text = f"{variant.model} has no parameter `{name}`; it has: {known}"
            raise ParameterError(f"{text} ({hint})" if hint else text)
    stated = scenario.params | dict(given)
    chosen = {name: p.default for name, p in variant.params.items()} | stated
    for name, value in chosen.items():
        problem = range_problem(variant.params[name], value)
        if problem:
            raise ParameterError(problem)
    result: dict[str, ParamValue] = {}
    for name, param in variant.params.items():
        value = chosen[name]
        if param.kind != "packets":
            if isinstance(value, tuple):
                raise ParameterError(f"`{name}` takes one number")
            result[name] = value
    for name, param in variant.params.items():
        if param.kind == "packets":
            result[name] = _per_flow(param, chosen[name], result, exact=name in stated)
    return {name: result[name] for name in variant.params}


def _per_flow(param: ParamInfo, value: ParamValue, known: Mapping[str, ParamValue], *, exact: bool) -> tuple[int, ...]:
    """Return one number a flow. exact: more numbers than flows are an error; of a default the first ones count."""
    node = param.owned.node
    assert isinstance(node, ast.Call)
    each = next(k.value for k in node.keywords if k.arg == "each")
    flows = evaluate(param.owned.module, each, known.get)
    if not isinstance(flows, int) or flows < 0:
        raise param.owned.module.file.error(each, "`each` is the number of flows", "write each=cpus")
    if flows > MOST_THREADS:
        raise ParameterError(f"a model has at most {MOST_THREADS} flows, not {flows}")
    numbers = value if isinstance(value, tuple) else (value,)
    if len(numbers) > flows:
        if exact and isinstance(value, tuple):
            flows_here = "1 flow" if flows == 1 else f"{flows} flows"
            raise ParameterError(f"`{param.name}` has {len(numbers)} numbers, one a flow, and there are {flows_here}")
        numbers = numbers[:flows]
    return (*numbers, *(numbers[-1:] * (flows - len(numbers))))


def range_problem(param: ParamInfo, value: ParamValue) -> str:
    """Return what is wrong with a value for a parameter, or an empty text."""
    for number in value if isinstance(value, tuple) else (value,):
        if number < param.low or (param.high is not None and number > param.high):
            upper = "" if param.high is None else f" and at most {param.high}"
            return f"`{param.name}` is at least {param.low}{upper}, not {number}"
    return ""
