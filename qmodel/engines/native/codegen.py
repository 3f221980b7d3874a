"""Generating C: the model unit of a program, one function for each step of each thread."""

from __future__ import annotations

from dataclasses import dataclass

from qmodel.engines.layout import Layout
from qmodel.engines.native.errors import UnsuitableError
from qmodel.engines.native.expressions import INT64, unsigned
from qmodel.engines.native.fields import accessors
from qmodel.engines.native.looks import LookWriter
from qmodel.engines.native.naming import comment
from qmodel.engines.native.steps import StepWriter
from qmodel.engines.native.unit import WORD, Unit
from qmodel.ir.program import BOUND, Program, Thread

__all__ = ["Source", "UnsuitableError", "generate"]

MOST = 64
"""Threads, properties and measures are the bits of a word."""
_ENDED = """\
static unsigned ended(const qm_state *s, qm_sink *out)
{
	(void)s;
	(void)out;
	return 0;
}"""


@dataclass(frozen=True, slots=True)
class Source:
    """A model unit, and what its numbers mean.

    steps: the thread and the number of its boundary. traps: the line of the specification where a value is watched.
    """

    text: str
    layout: Layout
    words: int
    steps: tuple[tuple[int, int], ...]
    properties: tuple[str, ...]
    traps: tuple[str, ...]


def generate(program: Program) -> Source:
    """Return the model unit of a lowered program. Raises UnsuitableError."""
    _refuse(program)
    unit = Unit(program, Layout(program, WORD))
    steps = [StepWriter(unit, thread).text() for thread in program.threads]
    looks = LookWriter(unit).text()
    fields = [_shared(unit), *(_own(unit, thread) for thread in program.threads)]
    parts = [_head(unit), *fields, "\n".join(unit.tables()), _ENDED, *steps, looks, _model(unit)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return Source(text, unit.layout, unit.words, tuple(unit.steps), tuple(unit.properties), tuple(unit.traps))


def _refuse(program: Program) -> None:
    """Refuse what does not fit. Raises UnsuitableError."""
    for things, count in (
        ("threads", len(program.threads)),
        ("properties", len(program.properties)),
        ("measures", len(program.measures)),
    ):
        if count > MOST:
            raise UnsuitableError(f"it has {count} {things}, and the native engine takes {MOST} at most")
    domains = {name: v.domain for name, v in program.variables.items()}
    for template in program.templates.values():
        domains |= {name.rpartition(".")[2]: v.domain for name, v in template.locals.items()}
    for name, domain in domains.items():
        if domain.width >= WORD or domain.lo < INT64[0] or domain.hi > INT64[1]:
            packets = len(program.packets.names)
            what = f"a list of {packets} packets" if domain.kind == "queue" else f"from {domain.lo} to {domain.hi}"
            raise UnsuitableError(f"`{name}` is {what}: that takes more than the 63 bits of the native engine")


def _head(unit: Unit) -> str:
    p = unit.program
    return (
        f"/* {comment(p.model)} {comment(p.variant)} ({p.memory}): generated, one function for each step */\n"
        f"#define QM_WORDS {unit.words}\n#define QM_BITS {p.skb_bits}\n"
        '#include "qmodel.h"'
    )


def _shared(unit: Unit) -> str:
    """Write how the shared variables are read and written."""
    lines = ["/* --- shared variables --- */"]
    for name, variable in unit.program.variables.items():
        doc = f": {variable.doc}" if variable.doc else ""
        both = accessors(unit.shared[name], unit.layout.shared[name], "get", "put", indexed=variable.size is not None)
        lines += ["", f"/* {comment(name + doc)} */", *both]
    return "\n".join(lines)


def _own(unit: Unit, thread: Thread) -> str:
    """Write how the counter and the locals of a thread are read and written."""
    lines = [f"/* --- thread {thread.tid}: {comment(thread.template)} on CPU{thread.cpu} --- */", ""]
    lines += accessors(str(thread.tid), unit.layout.counters[thread.tid], "at", "go")
    for name, bits in unit.layout.locals[thread.tid].items():
        lines += ["", *accessors(f"{thread.tid}_{unit.locals[thread.template][name]}", bits, "load", "save")]
    return "\n".join(lines)


def _model(unit: Unit) -> str:
    p, numbers = unit.program, {name: i for i, name in enumerate(unit.properties)}
    buffers = unsigned(sum(1 << t for t in p.buffers))
    return "\n".join(
        [
            "const struct qm_model qm_model = {",
            f"\t.threads = {len(p.threads)}, .steps = {len(unit.steps)},",
            f"\t.properties = {len(numbers)}, .measures = {len(p.measures)},",
            f"\t.deadlock = {numbers['deadlock']}, .bound = {numbers.get(BOUND, 'UINT32_MAX')}, .buffers = {buffers},",
            "\t.expand = expand, .step = step, .observe = observe, .waits_on = waits_on, .unfinished = unfinished,",
            "};",
        ]
    )
