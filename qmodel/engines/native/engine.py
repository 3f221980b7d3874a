"""The native engine: searches in compiled C, finds shortest traces, and gives an Outcome."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qmodel.engines import report
from qmodel.engines.memory import resident
from qmodel.engines.native import build, codegen, library
from qmodel.engines.native.codegen import Source
from qmodel.engines.native.errors import BuildError, NativeError, UnsuitableError
from qmodel.engines.native.library import Search, Status
from qmodel.engines.options import Progress
from qmodel.engines.trace import Target, TraceWriter
from qmodel.ir.interpreter import Interpreter

if TYPE_CHECKING:
    from qmodel.engines.options import Options
    from qmodel.ir.program import Program
    from qmodel.result import Outcome, Trace

SLICE = 1 << 14
"""States between two looks at the clock and at signals: some milliseconds."""
MARGIN = 1 << 28
"""Memory that is left to others."""
LEAST = 1 << 23
"""Memory that a search has at any rate."""
_FLAGS = ("-std=c11", "-O1")
_NO_MEMORY = "the memory of the machine is used up"

__all__ = ["Availability", "BuildError", "NativeError", "UnsuitableError", "available", "run", "source"]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether the engine can be used here, and why not."""

    ok: bool
    why: str = ""

    def __bool__(self) -> bool:
        return self.ok


def available() -> Availability:
    """Tell whether there is a C compiler."""
    if build.compiler() is None:
        return Availability(ok=False, why="there is no C compiler: no `cc` on the PATH")
    return Availability(ok=True)


def source(program: Program) -> str:
    """Return the model unit of a lowered program, as it is compiled. Raises UnsuitableError."""
    return codegen.generate(program).text


@dataclass(slots=True)
class _Found:
    """What a search found: see `report.Found`."""

    states: int = 1
    transitions: int = 0
    cut: int = 0
    bound: int = 0
    depth: int = 0
    complete: bool = False
    interrupted: bool = False
    why: str = ""
    bytes_per_state: float | None = None


def run(program: Program, options: Options, workers: int = 1) -> Outcome:
    """Search a lowered program.

    Raises SetupError where its scenario violates a property by itself, UnsuitableError where C cannot hold what the
    program needs, BuildError where there is no compiler or it fails.
    """
    started = time.monotonic()
    interpreter = Interpreter(program)
    initial = interpreter.initial()
    unit = codegen.generate(program)
    model = build.load("model", unit.text, _FLAGS)
    writer = TraceWriter(interpreter)
    found = _Found()
    traces: dict[Target, Trace | None] = {}
    taken: set[tuple[int, int]] = set()
    try:
        with library.opened(model, unit.layout.pack(initial), unit.words, _budget(options), workers) as search:
            _search(search, unit, options, found)
            taken = {step for step, was in zip(unit.steps, search.taken(len(unit.steps)), strict=True) if was}
            # Whatever ended the search, what it found is worth its traces.
            search.allow(search.figures().memory + _left(MARGIN // 2))
            traces = _traces(search, unit, program, writer, found)
            if found.states >= 100_000:
                found.bytes_per_state = search.figures().peak / found.states
    except MemoryError:
        found.why = found.why or _NO_MEMORY
    places = report.places(program, unit.layout, taken)
    return report.outcome("native", program, writer.threads(), found, traces, started, places)


def _search(search: Search, unit: Source, options: Options, found: _Found) -> None:
    started = told = time.monotonic()
    try:
        while (status := search.search(options.max_states, SLICE, stop_first=options.stop_first)) is Status.MORE:
            now = time.monotonic()
            if options.timeout is not None and now - started >= options.timeout:
                found.why = f"the limit of {options.timeout:g} seconds is reached"
                break
            if options.progress is not None and now - told >= 0.2:
                told = now
                figures = search.figures()
                rate = figures.states / max(now - started, 1e-9)
                options.progress(Progress(figures.states, rate, figures.frontier, figures.depth, resident()))
    except KeyboardInterrupt:
        status = Status.MORE
        found.interrupted = True
        found.why = "interrupted"
    figures = search.figures()
    if status is Status.TRAPPED:
        raise UnsuitableError(unit.traps[figures.trap - 1])
    found.states, found.transitions, found.depth = figures.states, figures.transitions, figures.depth
    found.cut, found.bound = figures.cut, figures.bound
    found.complete = status is Status.DONE
    if status is Status.FULL:
        found.why = f"the limit of {options.max_states:,} states is reached"
    elif status is Status.STOPPED:
        found.why = "stopped at the first violation"
    elif status is Status.CROWDED:
        found.why = f"the native engine cannot number more than {figures.states:,} states"
    elif status is Status.NO_MEMORY and options.max_memory is not None:
        found.why = f"the limit of {options.max_memory / 2**20:,.0f} MiB of memory is reached"
    elif status is Status.NO_MEMORY:
        found.why = _NO_MEMORY


def _traces(
    search: Search, unit: Source, program: Program, writer: TraceWriter, found: _Found
) -> dict[Target, Trace | None]:
    """Return the trace of every violated property and of every greatest value, None where there is no memory for it."""
    targets = [Target(property=name) for i, name in enumerate(unit.properties) if search.violated(i)]
    bests = [(m.name, search.best(i)) for i, m in enumerate(program.measures)]
    targets += [Target(measure=name, value=best) for name, best in bests if best is not None]
    traces: dict[Target, Trace | None] = dict.fromkeys(targets)
    try:
        ways = search.ways(SLICE, found.depth + 1) if targets else []
    except MemoryError:
        return traces
    for target, way in zip(targets, ways, strict=True):
        traces[target] = writer.along([(unit.layout.unpack(packed), tid) for packed, tid in way], target)
    return traces


# --- memory -----------------------------------------------------------------------------------------------------------


def _budget(options: Options) -> int:
    """Return the bytes that a search may use: what the options leave, or else what the machine does."""
    left = _left(MARGIN)
    return max(LEAST, left if options.max_memory is None else min(left, options.max_memory - resident()))


def _left(margin: int) -> int:
    """Return the bytes of memory that are free, less what should stay so."""
    return max(0, min(_free(), _cgroup()) - margin)


def _free() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return sys.maxsize


def _cgroup() -> int:
    """Return what the container that this runs in still may use."""
    root = Path("/sys/fs/cgroup")
    try:
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        return int(limit) - int((root / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # none, or `max`
        return sys.maxsize
