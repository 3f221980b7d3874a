"""Fixtures that several test modules use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import check_file

if TYPE_CHECKING:
    from qmodel.result import Outcome


@pytest.fixture
def check_source(tmp_path: Path) -> Callable[..., Outcome]:
    """Return a function from the text of a specification, a variant, a scenario and parameters to what comes out."""

    def check(source: str, variant: str | None = None, scenario: str = "default", **params: int) -> Outcome:
        path = tmp_path / "spec.py"
        path.write_text(source, encoding="utf-8")
        return check_file(path, variant, scenario, "sc", **params)

    return check
