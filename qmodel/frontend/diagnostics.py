"""Errors in a specification, printed as a good compiler prints them: place, source line, caret, remedy."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake: file, line (from 1), columns (from 0), the source line, what is wrong and what to write instead."""

    file: str
    line: int
    column: int
    end_column: int
    source: str
    message: str
    remedy: str

    def __str__(self) -> str:
        """Return the message with its source line and a caret below what is wrong."""
        number = f"{self.line:5} | "
        width = max(1, min(self.end_column, len(self.source)) - self.column)
        lines = [f"{self.file}:{self.line}:{self.column + 1}: error: {self.message}"]
        if self.source:
            before = "".join(c if c == "\t" else " " for c in self.source[: self.column])
            caret = " " * len(number) + before + "^" * width
            lines += [number + self.source, caret]
        if self.remedy:
            lines.append(f"       help: {self.remedy}")
        return "\n".join(lines)


class SpecError(Exception):
    """A specification that cannot be used; `diagnostics` has every mistake that was found."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


@dataclass(frozen=True, slots=True)
class File:
    """A source file: the name to print, and its lines."""

    name: str
    lines: tuple[str, ...]

    def line(self, number: int) -> str:
        """Return a line of the file, or nothing where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def error(self, node: ast.AST, message: str, remedy: str = "") -> SpecError:
        """Return an error at a place of the syntax tree, for the caller to raise."""
        return self.error_at(*self.place(node), message, remedy)

    def place(self, node: ast.AST) -> tuple[int, int, int]:
        """Return the line of a piece of syntax, and the columns that it covers there."""
        line = getattr(node, "lineno", 1)
        column = self._column(line, getattr(node, "col_offset", 0))
        end_line = getattr(node, "end_lineno", line)
        end = self._column(line, getattr(node, "end_col_offset", 0)) if end_line == line else len(self.line(line))
        return line, column, end

    def error_at(self, line: int, column: int, end: int, message: str, remedy: str = "") -> SpecError:
        """Return an error at a line and columns, for the caller to raise."""
        return SpecError([Diagnostic(self.name, line, column, end, self.line(line), message, remedy)])

    def _column(self, line: int, offset: int) -> int:
        """Turn an offset in UTF-8 bytes, as `ast` gives it, into characters."""
        return len(self.line(line).encode()[:offset].decode(errors="ignore"))


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a remedy: the nearest known name, or all of them where none is near."""
    names = sorted(set(known) - {name})
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return otherwise or ("known here: " + ", ".join(names) if names else "")
