"""Exit codes, and the errors that end a command with a message."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the exit code of every command means."""

    AS_EXPECTED = 0
    UNEXPECTED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERRUPTED = 130
    UNREAD = 141
    """Whoever read the report has left before its end, as `| head` does: what a shell gives for SIGPIPE."""


class UsageError(Exception):
    """A command that cannot be carried out as it was given: the text says what is wrong and what to write instead."""
