"""The search of specs/requeue.py, against an explorer that was written independently of qmodel."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from qmodel.engines.options import Options
from qmodel.engines.python.explore import Explorer
from qmodel.frontend.configure import configure
from qmodel.frontend.declarations import Variant, load
from qmodel.passes import lower
from tests.oracles import requeue_oracle

SPEC = Path(__file__).parents[1] / "specs" / "requeue.py"
VARIANTS = get_args(requeue_oracle.Variant)
CHILD = {"queued": ("a0",)}
GSO = {"requeued": ("a0", "a1")}


@dataclass(frozen=True)
class Case:
    """A scenario and values for every parameter of the model."""

    scenario: str
    packets: tuple[int, ...]
    busy: int
    stop: bool = False
    full: int = 0
    wakes: int = 0
    freezes: int = 0
    bypass: bool = True
    bulk: int = 2

    def __str__(self) -> str:
        words = [self.scenario, "+".join(map(str, self.packets)), f"busy{self.busy}", f"bulk{self.bulk}"]
        words += [word for word, there in (("stop", self.stop), ("nobypass", not self.bypass)) if there]
        words += [f"{n}{v}" for n, v in (("full", self.full), ("wakes", self.wakes), ("freezes", self.freezes)) if v]
        return "-".join(words)


# Small ones: every parameter differs from its default somewhere, alone or with what matters together with it.
MODERATE = [
    Case("queued", (1,), busy=1),
    Case("queued", (2,), busy=2, bulk=1),
    Case("queued", (2,), busy=3, bulk=3),
    Case("queued", (1,), busy=1, freezes=1),
    Case("queued", (1,), busy=2, stop=True, wakes=2),
    Case("queued", (1,), busy=1, full=1, wakes=2),
    Case("queued", (1, 1), busy=1),
    Case("requeued", (1,), busy=0, freezes=1),
    Case("requeued", (1,), busy=2, bypass=False),
    Case("requeued", (1, 1), busy=1),
    Case("default", (2,), busy=1, stop=True, wakes=3),
    Case("default", (1, 1), busy=1, stop=True, wakes=1),
    Case("default", (2, 1), busy=1),
    Case("default", (2, 1), busy=1, bypass=False, bulk=1),
    Case("default", (1, 1, 1), busy=0, bypass=False),
]


def large() -> Iterator[Case]:
    """All combinations of what matters together, as long as the oracle takes seconds for them."""
    scenarios = ("queued", "requeued", "default")
    for scenario, busy, (stop, wakes), bypass, bulk in product(
        scenarios, (1, 3), ((False, 0), (True, 2)), (True, False), (1, 3)
    ):
        yield Case(scenario, (2,), busy, stop=stop, wakes=wakes, bypass=bypass, bulk=bulk)
    for scenario, busy, freezes in product(scenarios, (0, 1), (1, 2)):
        yield Case(scenario, (1,), busy, freezes=freezes)
    for packets, busy, bypass in product(((2, 1), (2, 2)), (1, 2, 3), (True, False)):
        yield Case("default", packets, busy, bypass=bypass)
    for busy, bypass in product((0, 1), (True, False)):
        yield Case("default", (1, 1, 1), busy, bypass=bypass)
    for scenario in scenarios:
        yield Case(scenario, (1,), busy=2, stop=True, wakes=1, freezes=1)
        yield Case(scenario, (1, 1), busy=1, stop=True, wakes=1)
        yield Case(scenario, (1, 1), busy=1, full=1, wakes=1)
        yield Case(scenario, (2,), busy=1, stop=True, full=2, wakes=3)
    yield Case("default", (1, 1), busy=1, freezes=1)
    yield Case("default", (2, 1), busy=1, freezes=1)


@cache
def variants() -> dict[str, Variant]:
    """The variants of the spec, by name."""
    (model,) = load(SPEC)
    return {variant.name: variant for variant in model.variants}


def by_oracle(variant: requeue_oracle.Variant, case: Case) -> dict[str, Any]:
    """What the oracle finds."""
    found = requeue_oracle.explore(
        variant,
        len(case.packets),
        case.packets,
        case.busy,
        stop=case.stop,
        full=case.full,
        wakes=case.wakes,
        freezes=case.freezes,
        bypass=case.bypass,
        bulk=case.bulk,
        child=CHILD.get(case.scenario, ()),
        gso=GSO.get(case.scenario, ()),
    )
    return {
        "violated": found.violated,
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "quiescent": found.quiescent,
        "states by depth": list(found.layers),
    }


def by_qmodel(variant: str, case: Case) -> dict[str, Any]:
    """What qmodel finds: the same, or less if its search did not come to an end."""
    given: dict[str, int | tuple[int, ...]] = {
        "cpus": len(case.packets),
        "packets": case.packets,
        "busy": case.busy,
        "stop": case.stop,
        "fills": case.full,
        "wakes": case.wakes,
        "freezes": case.freezes,
        "bypass": case.bypass,
        "bulk": case.bulk,
    }
    explorer = Explorer(lower(configure(variants()[variant], case.scenario, given)), Options())
    found = explorer.run()
    return {
        "violated": {name: goal.length for name, goal in found.goals.items()},
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "quiescent": sum(bool(explorer.model.quiescent(state)) for layer in found.layers for state in layer),
        "states by depth": [len(layer) for layer in found.layers],
    }


def test_oracle_has_every_variant() -> None:
    """The oracle knows the variants of the spec, and no others."""
    assert sorted(VARIANTS) == sorted(variants())


def test_oracle_meets_its_claims(capsys: pytest.CaptureFixture[str]) -> None:
    """The oracle by itself refutes and proves what is known of the variants."""
    assert 0 == requeue_oracle.main([]), capsys.readouterr().out


@pytest.mark.parametrize("case", MODERATE, ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_search_is_the_oracles(variant: requeue_oracle.Variant, case: Case) -> None:
    """Both find the same number of states at every depth, the same transitions, and violations of the same length."""
    assert by_oracle(variant, case) == by_qmodel(variant, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(large()), ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_search_is_the_oracles_in_large(variant: requeue_oracle.Variant, case: Case) -> None:
    """Both find the same also where parameters are combined, and three CPUs send."""
    assert by_oracle(variant, case) == by_qmodel(variant, case)
