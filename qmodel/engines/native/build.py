"""Compiling C to a shared library, once: libraries are kept in the user's cache, named by what they were made from.

What is loaded runs with the user's rights. The cache is therefore used only where nobody else can write: every
directory on the way to it belongs to the user or to root, and neither it nor a library in it may be written by a group
or by all. Where that is not so, a library is made in a new private directory and forgotten afterwards.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from qmodel.engines.native.errors import BuildError

KEPT = 200
"""Libraries that are kept, the last used."""
_loaded: dict[str, ctypes.CDLL] = {}
"""Libraries of this process, by the name of their file: what is loaded stays."""
_HERE = Path(__file__).parent
_MAKING = "making-"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def compiler() -> str | None:
    """Return the path of the system's C compiler, or None where there is none."""
    return shutil.which("cc")


def load(name: str, text: str, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """Return the library of a source. Raises BuildError."""
    path = compiler()
    if path is None:
        raise BuildError("there is no C compiler: no `cc` on the PATH")
    command = (path, *flags, "-shared", "-fPIC")
    parts = (_identity(path, Path(path).stat().st_mtime_ns), *command[1:], *_headers(), text)
    file = f"{name}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:40]}.so"
    if file not in _loaded:
        _loaded[file] = _load(file, text, command)
    return _loaded[file]


def shipped(name: str) -> str:
    """Return the text of a C file that comes with the package."""
    return (_HERE / name).read_text(encoding="utf-8")


@cache
def _identity(path: str, changed: int) -> str:
    """Return what tells one compiler and machine from another."""
    del changed
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"`{path}` cannot be run: {error}") from None
    return f"{path} {done.stdout} {platform.machine()} {platform.system()}"


@cache
def _headers() -> tuple[str, ...]:
    return tuple(shipped(path.name) for path in sorted(_HERE.glob("*.h")))


def _load(file: str, text: str, command: tuple[str, ...]) -> ctypes.CDLL:
    directory = cache_directory()
    if directory is not None:
        with suppress(OSError):  # a cache that is full, or on a disk from which nothing may be run
            return _from_cache(directory, file, text, command)
    try:
        with tempfile.TemporaryDirectory(prefix="qmodel-") as private:
            return ctypes.CDLL(str(_compile(Path(private), text, command)))
    except OSError as error:
        raise BuildError(f"what `{command[0]}` makes cannot be kept or loaded: {error}") from None


def _from_cache(directory: Path, file: str, text: str, command: tuple[str, ...]) -> ctypes.CDLL:
    """Return a library from the cache, and put it there first where it is not. Raises BuildError, OSError."""
    kept = directory / file
    if _is_own(kept, stat.S_ISREG):
        with suppress(OSError):  # damaged: it is made again
            library = ctypes.CDLL(str(kept))
            os.utime(kept)
            return library
    private = Path(tempfile.mkdtemp(prefix=_MAKING, dir=directory))
    try:
        made = _compile(private, text, command)
        made.chmod(0o700)
        # Whoever makes the same library at the same time puts the same in its place.
        made.replace(kept)
    finally:
        shutil.rmtree(private, ignore_errors=True)
    _forget(directory)
    return ctypes.CDLL(str(kept))


def _compile(directory: Path, text: str, command: tuple[str, ...]) -> Path:
    """Compile in a directory that nobody else can write to. Raises BuildError."""
    source, made = directory / "unit.c", directory / "unit.so"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [*command, "-I", str(_HERE), "-o", str(made), str(source)], capture_output=True, text=True, check=False
    )
    if done.returncode or not made.is_file():
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise BuildError(f"`{command[0]}` fails: {errors[0] if errors else f'exit code {done.returncode}'}")
    return made


# --- the cache --------------------------------------------------------------------------------------------------------


def cache_directory() -> Path | None:
    """Return the directory of the cache, made where it was not there; None where it is not safe to use."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = given if given.is_absolute() else Path.home() / ".cache"
        path = base.resolve() / "qmodel" / "native"
        missing = [p for p in (path, *path.parents) if not p.exists()]
        if not all(_is_safe(p) for p in path.parents if p not in missing):
            return None
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    own = all(_is_own(p, stat.S_ISDIR) for p in (path, path.parent))
    return path if own and all(_is_safe(p) for p in path.parents) else None


def _is_own(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Tell whether a path is what it should be, no link, the user's own, and closed to others."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS


def _is_safe(path: Path) -> bool:
    """Tell whether nobody else can exchange what is in a directory that the user or root owns."""
    found = path.lstat()
    closed = not found.st_mode & _OTHERS or found.st_mode & stat.S_ISVTX
    return stat.S_ISDIR(found.st_mode) and found.st_uid in {0, os.geteuid()} and bool(closed)


def _forget(directory: Path) -> None:
    """Remove the libraries that were not used for the longest time, and what was left half made a day ago."""
    with suppress(OSError):
        found = sorted(directory.glob("*.so"), key=lambda p: p.stat().st_mtime, reverse=True)
        for path in found[KEPT:]:
            path.unlink()
        for path in directory.glob(f"{_MAKING}*"):
            if path.stat().st_mtime < time.time() - 86400:
                shutil.rmtree(path, ignore_errors=True)
