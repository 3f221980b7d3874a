"""What an engine is told besides the program, and what it tells while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: states found, states a second, states not yet expanded, depth, bytes of memory in use."""

    states: int
    rate: float
    frontier: int
    depth: int
    memory: int


@dataclass(frozen=True, slots=True)
class Options:
    """Limits of a search: each ends it as inconclusive. timeout in seconds, max_memory in bytes of the process.

    stop_first: end with the first depth at which a property is violated. progress is called now and then.
    """

    max_states: int | None = None
    timeout: float | None = None
    max_memory: int | None = None
    stop_first: bool = False
    progress: Callable[[Progress], None] | None = None
