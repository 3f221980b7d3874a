"""Running the command as a user does, within this process."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from qmodel.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command that has ended left behind."""

    code: int
    out: str
    err: str


class Command(Protocol):
    """Run `qmodel` with these words, at 80 columns; stdin is what it can read."""

    def __call__(self, *arguments: str | Path, stdin: str = "") -> Done:
        """Return what came out."""


@pytest.fixture
def qmodel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return the command as a function."""

    def run(*arguments: str | Path, stdin: str = "") -> Done:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in arguments])
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a specification to a file, and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "spec.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write
