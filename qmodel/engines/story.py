"""Retelling a trace in two or three sentences, the last of which says what is violated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.ir.expr import reads_of
from qmodel.ir.text import expr_text, thread_text, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmodel.ir.interpreter import Interpreter, State
    from qmodel.ir.program import Program, Property
    from qmodel.result import Trace


def violated(program: Program, state: State, interpreter: Interpreter, prop: Property) -> str:
    """Return how a state violates a property: what the variables in its condition are."""
    values = []
    for name in sorted(reads_of(prop.cond)):
        variable = program.variables[name]
        texts = [value_text(program, variable.domain, v) for v in interpreter.read(state, name)]
        values.append(f"{name} is {texts[0] if variable.size is None else '{' + ', '.join(texts) + '}'}")
    values += [f"{text} is {interpreter.evaluate(state, expr)}" for text, expr in prop.inside]
    facts = " and ".join(", ".join(values).rsplit(", ", 1)) if values else expr_text(prop.cond) + " does not hold"
    return f"in the end, {facts}" if prop.kind == "quiescent" else facts


def circle(program: Program, waits: Sequence[tuple[int, str]]) -> str:
    """Return who waits for whom."""
    parts = []
    for position, (tid, what) in enumerate(waits):
        holder = waits[(position + 1) % len(waits)][0]
        if what.startswith("CPU"):
            parts.append(f"{thread_text(program, tid)} is interrupted by {thread_text(program, holder)}")
        else:
            parts.append(f"{thread_text(program, tid)} waits for {what}, which {thread_text(program, holder)} has")
    return "; ".join(parts)


def tell(program: Program, trace: Trace, prop: str, message: str) -> tuple[str, ...]:
    """Return the sentences of a trace."""
    sentences = [*_answers(trace), *_lists(program, trace, prop)]
    sentences.append(_sentence(message))
    if prop:
        meaning = dict(program.builtin) | {p.name: p.doc for p in program.properties}
        doc = meaning.get(prop, "").splitlines()[:1]
        sentences.append(f"This violates {prop}" + (f": {doc[0].rstrip('.')}." if doc and doc[0] else "."))
    return tuple(sentences)


def _sentence(text: str) -> str:
    """Return a sentence. Names keep their letters: `a1 reaches the wire`, `qlen is 1`."""
    text = text.strip().rstrip(".")
    first = text.split(" ", 1)[0].rstrip(",")
    return (text[:1].upper() + text[1:] if first in _WORDS else text) + "."


_WORDS = {"a", "division", "in", "index", "more", "nothing", "the"}
"""What a message may begin with that is no name."""


def _answers(trace: Trace) -> list[str]:
    """Say how often the environment answered, by its text."""
    counts: dict[str, int] = {}
    for event in trace.events:
        if event.kind == "choose":
            counts[event.text] = counts.get(event.text, 0) + 1
    times = {1: "once", 2: "twice"}
    return [f"{text} happens {times.get(n, f'{n} times')}." for text, n in counts.items()]


def _lists(program: Program, trace: Trace, prop: str) -> list[str]:
    """For a wrong order: say where a packet was put behind one that was to come after it."""
    if prop != "order":
        return []
    order = {
        name: (program.packets.flows[i], program.packets.indices[i]) for i, name in enumerate(program.packets.names)
    }
    for event in trace.events:
        for change in event.changes:
            names = change.after.strip("[]").split() if change.after.startswith("[") else []
            old = change.before.strip("[]").split() if change.before.startswith("[") else []
            found = _inverted(names, order)
            if found and not _inverted(old, order):
                later, earlier = found
                return [f"{event.function}() leaves {change.name} as {change.after}: {earlier} is behind {later} now."]
    return []


def _inverted(names: Sequence[str], order: dict[str, tuple[int, int]]) -> tuple[str, str] | None:
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if first in order and second in order:
                (flow_a, index_a), (flow_b, index_b) = order[first], order[second]
                if flow_a == flow_b and index_a > index_b:
                    return first, second
    return None
