"""What an engine gives and a view reads: plain data, no behaviour of either side.

Every name that a person reads (`text`, `before`, `story` …) is already printable text here, so that a view needs
neither the specification nor the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """Ordered by how much there is to do: a run is as bad as its worst property."""

    HOLDS = "holds"
    INCONCLUSIVE = "inconclusive"
    REFUTED = "refuted"


class Strength(Enum):
    """How far a `holds` reaches."""

    EXHAUSTIVE = "exhaustive"
    BOUNDED = "bounded"
    INDUCTIVE = "inductive"


@dataclass(frozen=True, slots=True)
class Change:
    """One shared variable that an event changed, as text: `Change("gso_skb", "[a1]", "[a1 a0]")`."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Event:
    """One access (or answer of the environment), as it is printed.

    kind: `lock`, `unlock`, `load`, `store`, `atomic`, `list`, `wire`, `free`, `choose`, `softirq`, `wait`, `check`,
    `birth` or `fail`. `quiet` says that a short picture may leave the event out: it touches only lock-protected
    bookkeeping that the violated property does not read.
    """

    thread: int
    function: str
    text: str
    kind: str
    file: str
    line: int
    source: str
    changes: tuple[Change, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the search: what thread moved, which of its alternatives it took, and the accesses it made."""

    thread: int
    alternative: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A run from the initial state: to a violation, or to the greatest value of a measure.

    initial: the shared variables at the start, as text. switches: successive steps of different threads.
    story: sentences that retell it; the last names what is violated.
    """

    steps: tuple[Step, ...]
    switches: int
    initial: tuple[tuple[str, str], ...]
    story: tuple[str, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The accesses of all steps, in order."""
        return tuple(event for step in self.steps for event in step.events)


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """The verdict on one property. `why` says what an inconclusive verdict lacks, or what was violated."""

    name: str
    doc: str
    verdict: Verdict
    why: str = ""
    trace: Trace | None = None


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """The greatest value of a measure over the states that were reached, with a shortest run to it."""

    name: str
    doc: str
    max: int
    trace: Trace | None = None


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread of the run: `kind` is `task`, `softirq` or `environment`."""

    name: str
    cpu: int
    kind: str


@dataclass(frozen=True, slots=True)
class Place:
    """A step of the specification: where it stands, and whether it was ever taken in the run."""

    file: str
    line: int
    column: int
    function: str
    source: str
    taken: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine found out about one configuration, before anyone compares it with an expectation.

    complete: the whole state space was visited. why: what ended an incomplete run. seconds: of search and traces.
    bytes_per_state: peak memory of the search structures divided by states, or None where it was not measured.
    buffer_full: how many steps could not be followed because a store buffer had no room left. places: every step of
    the specification, where the engine counts which were taken.
    """

    engine: str
    reductions: tuple[str, ...]
    threads: tuple[ThreadInfo, ...]
    verdict: Verdict
    strength: Strength | None
    complete: bool
    interrupted: bool
    why: str
    states: int
    transitions: int
    depth: int
    seconds: float
    bytes_per_state: float | None
    properties: tuple[PropertyResult, ...]
    measures: tuple[MeasureResult, ...]
    buffer_full: int = 0
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Expected:
    """What the specification says of this configuration; `properties` are those that must be refuted."""

    verdict: Verdict
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One variant in one configuration: what was asked, what is expected, what came out.

    params: in the order of their declaration; a per-CPU parameter is a tuple. memory: `sc`, `tso` or `weak`.
    kernel: the commit and release the variant stands for, as text. as_expected is None where nothing is expected.
    """

    model: str
    variant: str
    doc: str
    kernel: str
    scenario: str
    scenario_doc: str
    params: tuple[tuple[str, int | tuple[int, ...]], ...]
    memory: str
    spec: str
    command: str
    outcome: Outcome
    expected: Expected | None
    as_expected: bool | None


@dataclass(frozen=True, slots=True)
class Report:
    """All runs of one command."""

    version: str
    runs: tuple[Run, ...] = field(default=())
