"""`qmodel litmus`: every final state of a litmus test under the memory models, as herd7 prints it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel import __version__
from qmodel.cli.errors import Exit
from qmodel.engines.options import Options
from qmodel.engines.python.explore import Explorer
from qmodel.frontend import litmus as frontend
from qmodel.frontend.declarations import MEMORIES
from qmodel.frontend.litmus.condition import holds
from qmodel.frontend.litmus.condition import text as condition_text
from qmodel.passes import lower
from qmodel.passes.memory.buffers import Weak

if TYPE_CHECKING:
    from qmodel.frontend.litmus import Litmus
    from qmodel.ir.program import Program, Template

_SAYS = {"weak": "loads are taken in program order here, so that Never is no promise for arm64"}
"""What has to be said of a memory model beside its verdict."""
_KINDS = {"exists": "Allowed", "forall": "Required", "~exists": "Forbidden"}


@dataclass(frozen=True)
class Answer:
    """What a test can end in under a memory model.

    states: every final state, as the values of what the test shows, in order. explored: how many states were visited.
    deadlock: some way never ends. why: what ended the search too early, if anything did.
    """

    test: Litmus
    memory: str
    states: tuple[tuple[int, ...], ...]
    explored: int
    deadlock: bool
    why: str

    @property
    def positive(self) -> int:
        """How many final states satisfy the condition."""
        return sum(holds(self.test.condition, dict(zip(self.test.shown, s, strict=True))) for s in self.states)

    @property
    def negative(self) -> int:
        """How many final states do not."""
        return len(self.states) - self.positive

    @property
    def observation(self) -> str:
        """How often the condition holds, in herd7's words."""
        return "Never" if not self.positive else "Sometimes" if self.negative else "Always"

    @property
    def ok(self) -> bool:
        """Whether the quantifier holds: some state, all states or no state satisfies the condition."""
        return {"exists": self.positive > 0, "forall": self.negative == 0, "~exists": self.positive == 0}[
            self.test.quantifier
        ]


@click.command("litmus")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--memory", type=click.Choice([*MEMORIES, "all"]), default="all", show_default=True, help="The memory model."
)
@click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="End as inconclusive at N states.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="End as inconclusive after so long.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def litmus(
    *, files: tuple[Path, ...], memory: str, max_states: int | None, timeout: float | None, as_json: bool
) -> int:
    """Find every final state of litmus tests in C.

    They are written in the dialect that herd7 reads for the Linux kernel, and the
    report is in its words; witnesses are counted in final states.

    Exit code: 0, or 1 where a `forall` or `~exists` does not hold, 2 wrong usage or
    test, 3 inconclusive.
    """
    tests = [frontend.read(file) for file in files]
    options = Options(max_states=max_states, timeout=timeout)
    answers = [answer(t, m, options) for t in tests for m in (MEMORIES if memory == "all" else [memory])]
    if as_json:
        click.echo(json.dumps(document(answers), indent=2))
    else:
        click.echo("\n\n".join(text(a) for a in answers))
    if any(a.why for a in answers):
        return Exit.INCONCLUSIVE
    failed = any(not a.ok and a.test.quantifier != "exists" for a in answers)
    return Exit.UNEXPECTED if failed else Exit.AS_EXPECTED


def answer(test: Litmus, memory: str, options: Options) -> Answer:
    """Search a test under a memory model. Raises SpecError where the test does what no code may."""
    program = frontend.build(test)
    program = lower(program, memory, _room(program))
    explorer = Explorer(program, options)
    found = explorer.run()
    for name, goal in found.goals.items():
        if name != "deadlock":
            packed, tid = goal.steps[0]
            raise _wrong(test, explorer, packed, tid, name)
    fields = {place: found.model.layout.shared[place.key] for place in test.named}
    ends: set[tuple[int, ...]] = set()
    for state in (s for layer in found.layers for s in layer if found.model.quiescent(s)):
        values = {place: field.get(state) for place, field in fields.items()}
        if holds(test.keep, values):
            ends.add(tuple(values[place] for place in test.shown))
    return Answer(test, memory, tuple(sorted(ends)), found.states, "deadlock" in found.goals, found.why)


def _room(program: Program) -> int:
    """Return how many stores of a thread can be pending at most: those on its longest way."""
    return max(1, *(_longest(t) for t in program.templates.values()))


def _longest(template: Template) -> int:
    nodes = template.nodes
    longest = [0] * len(nodes)
    for number in reversed(range(len(nodes))):  # without loops each node comes before those that it goes on to
        access = nodes[number].access
        pending = access is not None and access.name in Weak.buffered_primitives | {"rcu_read_unlock"}
        longest[number] = pending + max((longest[n] for n in nodes[number].next), default=0)
    return longest[0]


def _wrong(test: Litmus, explorer: Explorer, packed: int, tid: int, name: str) -> Exception:
    """Return the error for a step that violates what comes with the language."""
    interpreter = explorer.interpreter
    outcomes = interpreter.outcomes(explorer.model.layout.unpack(packed), tid)
    failure = next(f for outcome in outcomes for f in outcome.failures if f.property == name)
    site = interpreter.program.template_of(tid).nodes[failure.node].site
    return test.file.error_at(site.line, site.column, site.end_column, failure.message)


# --- reports ----------------------------------------------------------------------------------------------------------


def text(answer: Answer) -> str:
    """Return an answer as herd7 prints it, below a line with the memory model."""
    test = answer.test
    said = _SAYS.get(answer.memory)
    lines = [
        f"% memory {answer.memory}" + (f": {said}" if said else ""),
        f"Test {test.name} {_KINDS[test.quantifier]}",
        f"States {len(answer.states)}",
        *(" ".join(f"{p}={v};" for p, v in zip(test.shown, s, strict=True)) for s in answer.states),
        "Ok" if answer.ok else "No",
        "Witnesses",
        "Positive: {} Negative: {}".format(*_witnesses(answer)),
    ]
    if answer.deadlock:
        lines.append("Flag deadlock")
    lines.append(f"Condition {test.quantifier} ({condition_text(test.condition)})")
    lines.append(f"Observation {test.name} {answer.observation} {answer.positive} {answer.negative}")
    if answer.why:
        lines.append(f"% inconclusive: {answer.why}")
    return "\n".join(lines)


def _witnesses(answer: Answer) -> tuple[int, int]:
    """Return how many final states speak for the quantifier and against it."""
    counts = answer.positive, answer.negative
    return counts if answer.test.quantifier != "~exists" else (counts[1], counts[0])


def document(answers: list[Answer]) -> dict[str, Any]:
    """Return answers as a JSON document."""
    return {"schema": 1, "qmodel": __version__, "tests": [_entry(a) for a in answers]}


def _entry(answer: Answer) -> dict[str, Any]:
    return {
        "file": answer.test.file.name,
        "name": answer.test.name,
        "memory": answer.memory,
        "condition": f"{answer.test.quantifier} ({condition_text(answer.test.condition)})",
        "ok": answer.ok,
        "observation": answer.observation,
        "positive": answer.positive,
        "negative": answer.negative,
        "deadlock": answer.deadlock,
        "inconclusive": answer.why,
        "explored": answer.explored,
        "states": [dict(zip(map(str, answer.test.shown), s, strict=True)) for s in answer.states],
    }
