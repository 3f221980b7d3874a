"""The words of a function: the kernel's primitives, under their own names, and what the model adds to them.

Each access to shared memory is one step. A specification is read, never run.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from qmodel.lang.values import Bits, Lock, Skb, SkbQueue

T = TypeVar("T")


# --- plain and marked accesses --------------------------------------------------------------------------------------


def READ_ONCE(variable: T) -> T:
    """Read a shared variable; also a guarded one without its lock, which is then meant and no data race."""
    return variable


def WRITE_ONCE(variable: T, value: T) -> None:
    """Store to a shared variable; also to a guarded one without its lock."""


def data_race(variable: T) -> T:
    """Read a guarded variable without its lock, where any value will do."""
    return variable


def smp_load_acquire(variable: T) -> T:
    """Read a variable; later accesses come after it."""
    return variable


def smp_store_release(variable: T, value: T) -> None:
    """Store to a variable; earlier accesses come before it."""


# --- barriers -------------------------------------------------------------------------------------------------------


def smp_mb() -> None:
    """Order every access before it with every access after it."""


def smp_rmb() -> None:
    """Order the reads before it with the reads after it."""


def smp_wmb() -> None:
    """Order the stores before it with the stores after it."""


def smp_mb__before_atomic() -> None:
    """Make the void atomic that follows a full barrier towards what is before it."""


def smp_mb__after_atomic() -> None:
    """Make the void atomic just before it a full barrier towards what follows."""


def barrier() -> None:
    """Stop the compiler, not the CPU: without effect here, where nothing is compiled out of order."""


def cpu_relax() -> None:
    """Wait a moment in a loop: without effect on the state."""


# --- atomics --------------------------------------------------------------------------------------------------------


def xchg(variable: T, value: T) -> T:
    """Store a value and return the one it replaced, in one step."""
    return value


def cmpxchg(variable: T, old: T, new: T) -> T:
    """Store `new` where the variable equals `old`; return what was found."""
    return old


def try_cmpxchg(variable: T, old: T, new: T) -> bool:
    """Store `new` where the variable equals the local `old`; else set that local to what was found. Tell which."""
    return True


def atomic_read(variable: int) -> int:
    """Read an atomic_t."""
    return variable


def atomic_set(variable: int, value: int) -> None:
    """Store to an atomic_t."""


def atomic_inc(variable: int) -> None:
    """Add 1 in one step."""


def atomic_dec(variable: int) -> None:
    """Subtract 1 in one step."""


def atomic_add(value: int, variable: int) -> None:
    """Add a value in one step."""


def atomic_sub(value: int, variable: int) -> None:
    """Subtract a value in one step."""


def atomic_inc_return(variable: int) -> int:
    """Add 1 in one step and return the new value."""
    return variable


def atomic_dec_return(variable: int) -> int:
    """Subtract 1 in one step and return the new value."""
    return variable


def atomic_add_return(value: int, variable: int) -> int:
    """Add a value in one step and return the new value."""
    return variable


def atomic_fetch_add(value: int, variable: int) -> int:
    """Add a value in one step and return the old value."""
    return variable


def atomic_dec_and_test(variable: int) -> bool:
    """Subtract 1 in one step and tell whether 0 was reached."""
    return True


# --- bits of a word -------------------------------------------------------------------------------------------------


def BIT(bit: Bits) -> int:
    """Return the mask of a bit."""
    return 1 << bit


def set_bit(bit: Bits, word: int) -> None:
    """Set a bit, atomically, without an order."""


def clear_bit(bit: Bits, word: int) -> None:
    """Clear a bit, atomically, without an order."""


def test_bit(bit: Bits, word: int) -> bool:
    """Read a bit."""
    return True


def test_and_set_bit(bit: Bits, word: int) -> bool:
    """Set a bit and tell whether it was set, in one step, as a full barrier."""
    return True


def test_and_clear_bit(bit: Bits, word: int) -> bool:
    """Clear a bit and tell whether it was set, in one step, as a full barrier."""
    return True


def __set_bit(bit: Bits, word: int) -> None:
    """Set a bit by a read and a store: two steps."""


def __clear_bit(bit: Bits, word: int) -> None:
    """Clear a bit by a read and a store: two steps."""


# --- locks, bottom halves, softirqs ---------------------------------------------------------------------------------


def spin_lock(lock: Lock) -> None:
    """Take a lock; wait where another thread holds it."""


def spin_trylock(lock: Lock) -> bool:
    """Take a lock where it is free, and tell whether it was."""
    return True


def spin_unlock(lock: Lock) -> None:
    """Release a lock."""


def spin_is_locked(lock: Lock) -> bool:
    """Tell whether anybody holds a lock."""
    return True


def spin_lock_bh(lock: Lock) -> None:
    """Switch this CPU's bottom halves off and take a lock."""


def spin_unlock_bh(lock: Lock) -> None:
    """Release a lock and switch this CPU's bottom halves on again."""


def local_bh_disable() -> None:
    """Switch this CPU's bottom halves off: no softirq starts here until they are on again."""


def local_bh_enable() -> None:
    """Switch this CPU's bottom halves on again."""


def raise_softirq(handler: object) -> None:
    """Raise a softirq on this CPU: `raise_softirq(m.net_tx_action)`."""


def smp_processor_id() -> int:
    """Return the number of the CPU that runs this thread."""
    return 0


# --- packets --------------------------------------------------------------------------------------------------------


def __skb_queue_tail(queue: SkbQueue, skb: Skb | None) -> None:
    """Put a packet at the end of a list."""


def __skb_queue_head(queue: SkbQueue, skb: Skb | None) -> None:
    """Put a packet in front of a list."""


def __skb_dequeue(queue: SkbQueue) -> Skb | None:
    """Take the first packet off a list; None where it is empty."""
    return None


def skb_peek(queue: SkbQueue) -> Skb | None:
    """Look at the first packet of a list; None where it is empty."""
    return None


def skb_queue_empty(queue: SkbQueue) -> bool:
    """Tell whether a list is empty."""
    return True


def skb_queue_empty_lockless(queue: SkbQueue) -> bool:
    """Tell whether a guarded list is empty, without its lock: it may be otherwise at once."""
    return True


def skb_queue_len(queue: SkbQueue) -> int:
    """Return the length of a list."""
    return 0


def skb_queue_splice_init(source: SkbQueue, queue: SkbQueue) -> None:
    """Move all of `source`, in order, in front of `queue`; two shared lists are two steps."""


def skb_queue_splice_tail_init(source: SkbQueue, queue: SkbQueue) -> None:
    """Move all of `source`, in order, behind `queue`; two shared lists are two steps."""


def transmit(skb: Skb | None) -> None:
    """Hand a packet to the hardware: it is on the wire. `order` is judged here."""


def kfree_skb(skb: Skb | None) -> None:
    """Free a packet."""


def llist_add(skb: Skb | None, queue: SkbQueue) -> bool:
    """Put a packet in front of a lock-less list, in one step, as a full barrier; tell whether the list was empty."""
    return True


def llist_del_all(queue: SkbQueue) -> SkbQueue:
    """Take the whole of a lock-less list, in one step, as a full barrier: the packet that came last is its head."""
    return queue


def llist_reverse_order(queue: SkbQueue) -> SkbQueue:
    """Return a list of the thread's own turned round."""
    return queue


def llist_empty(queue: SkbQueue) -> bool:
    """Tell whether a lock-less list is empty."""
    return True


# --- RCU ------------------------------------------------------------------------------------------------------------


def rcu_read_lock() -> None:
    """Begin a read-side critical section. It is a step, so that a grace period may begin before it."""


def rcu_read_unlock() -> None:
    """End a read-side critical section."""


def synchronize_rcu() -> None:
    """Wait for every reader that is in its section now; their stores are visible when it returns. Two steps."""


# --- the model's own ------------------------------------------------------------------------------------------------


def choose(budget: int = 0, text: str = "") -> bool:
    """Let the environment answer, both ways. With a Budget it answers true at most that often in a whole run.

    text: what a trace prints where the answer is true.
    """
    return True


def inside(*functions: object) -> int:
    """Return how many threads are in one of some functions, or in what they call. In properties only."""
    return 0


def demand(name: str, condition: bool) -> None:  # noqa: FBT001
    """Judge a property of this place: it is refuted where the condition does not hold, and the search goes on.

    The condition looks at all of memory without a step, as an invariant does: `demand("early-drop", len(m.q) > 0)`.
    """


def check(condition: bool, text: str) -> None:  # noqa: FBT001  it reads as kernel code does: WARN_ON(condition)
    """Demand that a condition holds here; where it does not, `check` is refuted with this text."""


def wait_until(condition: bool) -> None:  # noqa: FBT001
    """Wait until a condition on one shared variable holds: one step, taken where it does."""


def atomic() -> AbstractContextManager[None]:
    """Make a block one step, for what the model does not want to look into."""
    return nullcontext()
