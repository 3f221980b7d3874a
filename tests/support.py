"""What tests of whole specifications share: from a file or a text to what came out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmodel.engines.options import Options
from qmodel.engines.python.engine import run
from qmodel.frontend.configure import configure
from qmodel.frontend.declarations import load
from qmodel.passes import lower
from qmodel.result import Verdict

if TYPE_CHECKING:
    from qmodel.frontend.declarations import ParamValue, Variant
    from qmodel.ir.program import Program
    from qmodel.result import Outcome, Trace

CLASSICS = Path(__file__).parent / "classics"


def classic(name: str) -> Path:
    """Return the specification of a classic program."""
    return CLASSICS / f"{name}.py"


def variants_of(path: Path) -> list[Variant]:
    """Return every variant of every model in a file."""
    return [variant for spec in load(path) for variant in spec.variants]


def find_variant(path: Path, name: str | None) -> Variant:
    """Return a variant of the one model in a file; None stands for the only one."""
    variants = variants_of(path)
    if name is None:
        (only,) = variants
        return only
    return {variant.name: variant for variant in variants}[name]


def program_of(
    path: Path, variant: str | None = None, scenario: str = "default", memory: str = "sc", **params: ParamValue
) -> Program:
    """Return the lowered program of a variant in one configuration."""
    return lower(configure(find_variant(path, variant), scenario, params), memory)


def check_file(
    path: Path, variant: str | None = None, scenario: str = "default", memory: str = "sc", **params: ParamValue
) -> Outcome:
    """Search a variant in one configuration, to the end."""
    return run(program_of(path, variant, scenario, memory, **params), Options())


def refuted(outcome: Outcome) -> set[str]:
    """Return the properties that are refuted."""
    return {p.name for p in outcome.properties if p.verdict is Verdict.REFUTED}


def trace_of(outcome: Outcome, name: str) -> Trace:
    """Return the trace that refutes a property."""
    (trace,) = (p.trace for p in outcome.properties if p.name == name)
    assert trace is not None, f"{name} is not refuted"
    return trace


def story(outcome: Outcome, name: str) -> str:
    """Return how the trace that refutes a property is retold."""
    return " ".join(trace_of(outcome, name).story)


def maximum(outcome: Outcome, name: str) -> int:
    """Return the greatest value of a measure."""
    (measure,) = (m for m in outcome.measures if m.name == name)
    return measure.max
