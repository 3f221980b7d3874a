"""The engine unit, as Python sees it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from qmodel.engines.native import build

MOST = (1 << 64) - 1


class Status(IntEnum):
    """How a call ended; the engine unit says what each means."""

    MORE = 0
    DONE = 1
    FULL = 2
    STOPPED = 3
    NO_MEMORY = 4
    CROWDED = 5
    TRAPPED = 6


class Figures(ctypes.Structure):
    """How far a search is: `struct qm_figures`."""

    states: int
    transitions: int
    cut: int
    bound: int
    frontier: int
    memory: int
    peak: int
    depth: int
    trap: int
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("states", "transitions", "cut", "bound", "frontier", "memory", "peak")),
        ("depth", ctypes.c_uint32),
        ("trap", ctypes.c_uint32),
    )


_HANDLE, _U32, _U64, _INT = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
_FUNCTIONS = {
    "qm_open": (_HANDLE, _HANDLE, _HANDLE, _U64, ctypes.c_uint),
    "qm_close": (None, _HANDLE),
    "qm_allow": (None, _HANDLE, _U64),
    "qm_search": (_INT, _HANDLE, _U64, _INT, _U64),
    "qm_look": (None, _HANDLE, ctypes.POINTER(Figures)),
    "qm_taken": (None, _HANDLE, ctypes.POINTER(ctypes.c_uint8)),
    "qm_violated": (_INT, _HANDLE, _U32),
    "qm_best": (_INT, _HANDLE, _U32, ctypes.POINTER(ctypes.c_int64)),
    "qm_trace": (_INT, _HANDLE),
    "qm_trace_back": (_INT, _HANDLE, _U64),
    "qm_ways": (_U32, _HANDLE),
    "qm_walk": (ctypes.c_int64, _HANDLE, _U32, _HANDLE, ctypes.POINTER(ctypes.c_int32)),
}


class Search:
    """A search that the engine unit does: calls return soon, so that signals are seen between them."""

    def __init__(self, library: ctypes.CDLL, handle: int, words: int) -> None:
        self._library, self._handle, self._words = library, handle, words

    def search(self, max_states: int | None, slice_: int, *, stop_first: bool) -> Status:
        """Search on, for about so many states."""
        limit = MOST if max_states is None else max(0, min(max_states, MOST))
        return Status(self._library.qm_search(self._handle, limit, stop_first, slice_))

    def figures(self) -> Figures:
        """Return how far the search is."""
        figures = Figures()
        self._library.qm_look(self._handle, ctypes.byref(figures))
        return figures

    def taken(self, steps: int) -> list[bool]:
        """Return of each step whether it was ever taken."""
        found = (ctypes.c_uint8 * steps)()
        self._library.qm_taken(self._handle, found)
        return [bool(was) for was in found]

    def violated(self, number: int) -> bool:
        """Tell whether a property is violated."""
        return bool(self._library.qm_violated(self._handle, number))

    def best(self, number: int) -> int | None:
        """Return the greatest value of a measure, or None where it has none."""
        value = ctypes.c_int64()
        return value.value if self._library.qm_best(self._handle, number, ctypes.byref(value)) else None

    def allow(self, budget: int) -> None:
        """Let the search use more or less memory from now on."""
        self._library.qm_allow(self._handle, max(0, min(budget, MOST)))

    def ways(self, slice_: int, longest: int) -> list[list[tuple[int, int]]]:
        """Return the shortest ways to every violated property and to every greatest value, in their order.

        A way has packed states, each with the thread that moves next, -1 where none does. longest: states in the
        longest of them. Raises MemoryError.
        """
        status = Status(self._library.qm_trace(self._handle))
        while status is Status.MORE:
            status = Status(self._library.qm_trace_back(self._handle, slice_))
        if status is not Status.DONE:
            raise MemoryError
        return [self._walk(number, longest) for number in range(self._library.qm_ways(self._handle))]

    def _walk(self, number: int, longest: int) -> list[tuple[int, int]]:
        states = (ctypes.c_uint64 * (self._words * longest))()
        threads = (ctypes.c_int32 * longest)()
        length = self._library.qm_walk(self._handle, number, states, threads)
        if not length:
            raise MemoryError
        packed = (states[i * self._words : (i + 1) * self._words] for i in range(length))
        return [(sum(w << 64 * i for i, w in enumerate(words)), threads[i]) for i, words in enumerate(packed)]


@contextmanager
def opened(model: ctypes.CDLL, initial: int, words: int, budget: int, workers: int) -> Iterator[Search]:
    """Begin a search of a model at a packed state. Raises BuildError, MemoryError."""
    flags = ("-O2", "-pthread", f"-DQM_WORDS={words}")
    library = build.load(f"engine{words}", build.shipped("engine.c"), flags)
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    state = (ctypes.c_uint64 * words)(*(initial >> 64 * i & MOST for i in range(words)))
    table = ctypes.addressof(ctypes.c_char.in_dll(model, "qm_model"))
    handle = library.qm_open(table, state, max(0, min(budget, MOST)), workers)
    if not handle:
        raise MemoryError
    try:
        yield Search(library, handle, words)
    finally:
        library.qm_close(handle)
