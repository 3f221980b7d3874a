"""The types of values in a specification, as an editor and mypy see them."""

from __future__ import annotations

from enum import IntEnum


class Bits(IntEnum):
    """Names of the bits of a flag word: `class TxqState(Bits): XOFF = 0; FROZEN = 1`. A member is a bit number."""


class Lock:
    """A spinlock_t, for spin_lock() and its kin."""


class Skb:
    """A packet in a thread's hands, or NULL (None). Where it goes is watched: see `once` and `no-leak`."""

    flow: int
    """The flow that the packet belongs to: the number of the CPU that sends it."""
    index: int
    """Its place within the flow, from 0."""


class SkbQueue:
    """A list of packets. `SkbQueue()` is an empty one of the thread's own; work on it costs no step."""

    first: Skb | None
    """The head of a shared list, for READ_ONCE(m.NAME.first) and try_cmpxchg(m.NAME.first, old, skb), which puts skb
    in front where the head is still `old`."""

    def __len__(self) -> int:
        """Return the number of packets."""
        return 0
