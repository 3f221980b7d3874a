"""Expected output, stored in the files of snapshots/.

To write them anew, and then read what `git diff` says of it:

    QMODEL_UPDATE_SNAPSHOTS=1 python3 -m pytest tests/views
"""

from __future__ import annotations

import os
from pathlib import Path

_DIRECTORY = Path(__file__).parent / "snapshots"


def snapshot(name: str, actual: str) -> str:
    """Return the text that is stored under this name, after writing it if that was asked for."""
    path = _DIRECTORY / name
    if os.environ.get("QMODEL_UPDATE_SNAPSHOTS") == "1":
        path.write_text(actual, encoding="utf-8")
    return path.read_text(encoding="utf-8")
