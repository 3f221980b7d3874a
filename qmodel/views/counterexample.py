"""A stored counterexample: one JSON document with all that is needed to take its steps again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from qmodel.views.json_view import param, trace_object

if TYPE_CHECKING:
    from qmodel.result import PropertyResult, Run

SCHEMA = 1


def document(run: Run, prop: PropertyResult) -> str:
    """Return the counterexample of a refuted property: configuration, moves (thread, alternative), and the trace."""
    assert prop.trace is not None
    whole = {
        "schema": SCHEMA,
        "kind": "counterexample",
        "model": run.model,
        "variant": run.variant,
        "spec": run.spec,
        "scenario": run.scenario,
        "params": {name: param(value) for name, value in run.params},
        "memory": run.memory,
        "reductions": list(run.outcome.reductions),
        "property": prop.name,
        "command": run.command,
        "moves": [[step.thread, step.alternative] for step in prop.trace.steps],
        "trace": trace_object(run, prop.trace),
    }
    return json.dumps(whole, indent=1) + "\n"
