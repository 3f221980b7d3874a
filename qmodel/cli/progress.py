"""The progress line: on a terminal only, and gone when the work is done."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType
from typing import Self

from qmodel.engines.options import Progress


class ProgressLine:
    """Rewrites one line of standard error while a search runs."""

    def __init__(self) -> None:
        self.active = sys.stderr.isatty()
        self.title = ""
        self._written = 0

    def __call__(self, progress: Progress) -> None:
        """Show how far a search is."""
        if not self.active:
            return
        text = (
            f"{self.title}: {progress.states:,} states, {progress.rate:,.0f}/s, frontier {progress.frontier:,}, "
            f"depth {progress.depth}, {progress.memory / 2**20:,.0f} MiB"
        )
        self._write(text[: max(shutil.get_terminal_size((80, 24)).columns - 1, 1)])

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._written))
        sys.stderr.flush()
        self._written = len(text)

    def __enter__(self) -> Self:
        """Return the line."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wipe the line."""
        if self.active and self._written:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()
