"""Finding specifications: those that come with qmodel by name, others by path."""

from __future__ import annotations

import os
from pathlib import Path

import click

from qmodel.cli.errors import UsageError
from qmodel.frontend.declarations import Spec, Variant, load
from qmodel.frontend.diagnostics import did_you_mean
from qmodel.frontend.source import SHIPPED


def shipped_names() -> list[str]:
    """Return the names of the specifications that come with qmodel."""
    return [path.stem for path in sorted(SHIPPED.glob("[a-z]*.py"))]


def find(name: str) -> list[Spec]:
    """Return the models of a specification: a name of a shipped one, or the path of a file.

    Raises UsageError where there is none, SpecError where it has mistakes.
    """
    if name.endswith(".py") or os.sep in name or name in {".", ".."}:
        path, shown = Path(name), click.format_filename(name)
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "does not exist"
            raise UsageError(f"{shown} {what}; give the path of a specification file, or one of: {_known()}")
    else:
        stem = name.replace("-", "_")  # a model is called restart-seq, its file restart_seq.py
        path, shown = SHIPPED / f"{stem}.py", f"specs/{stem}.py"
        if stem not in shipped_names():
            hint = did_you_mean(name, shipped_names(), f"there are: {_known()}")
            raise UsageError(f"there is no model `{name}`; {hint} (your own: ./{name}.py)")
    try:
        return load(path, shown)
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}") from None


def _known() -> str:
    return ", ".join(shipped_names())


def choose_variants(specs: list[Spec], names: tuple[str, ...]) -> list[tuple[Spec, Variant]]:
    """Return the variants of these names, all where none is named. Raises UsageError."""
    every = [(spec, variant) for spec in specs for variant in spec.variants]
    known = [variant.name for _, variant in every]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "")
            there = f"there are: {', '.join(known)}"
            raise UsageError(f"{specs[0].model} has no variant `{name}`; {hint + ' ' if hint else ''}{there}")
    return [(spec, variant) for spec, variant in every if not names or variant.name in names]
