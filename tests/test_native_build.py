"""Compiling C and keeping what comes out: only where nobody else can write."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from qmodel.engines.native import build
from qmodel.engines.native.engine import BuildError, available, run
from qmodel.engines.options import Options
from tests.support import classic, program_of
from tests.test_packaging import build as build_archive
from tests.test_packaging import names

needs_compiler = pytest.mark.skipif(not available(), reason="there is no C compiler")


def test_wheel_has_the_c_files(tmp_path: Path) -> None:
    """What is compiled where qmodel runs is in the package."""
    wheel = build_archive("wheel", Path(__file__).parents[1], tmp_path)
    assert ["engine.c", "qmodel.h"] == [Path(n).name for n in names(wheel) if Path(n).suffix in {".c", ".h"}]


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a compiler the engine says that it is not there, and why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (False, "there is no C compiler: no `cc` on the PATH") == (bool(available()), available().why)
    with pytest.raises(BuildError, match="no C compiler"):
        run(program_of(classic("abba"), "abba"), Options())


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a compiler says where it fails is passed on."""
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho 'unit.c:1: error: no stdint.h' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(BuildError, match=r"fails: unit\.c:1: error: no stdint\.h"):
        build.load("broken", "int x;")


def answer(number: int) -> str:
    """Return a source with one function."""
    return f"int answer(void) {{ return {number}; }}\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for caches, and no library loaded from it yet."""
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "qmodel" / "native"


@needs_compiler
def test_cache_is_private(cache: Path) -> None:
    """A library is kept in a directory that is the user's alone, and nothing else is left there."""
    assert 1 == build.load("a", answer(1)).answer()
    assert {0o700} == {stat.S_IMODE(p.stat().st_mode) for p in (cache, cache.parent, *cache.iterdir())}
    assert 1 == len(list(cache.iterdir()))


@needs_compiler
def test_cache_is_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the cache is not compiled again."""
    build.load("a", answer(2))
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setattr(build, "_compile", None)
    assert 2 == build.load("a", answer(2)).answer()
    assert 1 == len(list(cache.iterdir()))


@needs_compiler
def test_cache_tells_sources_and_flags_apart(cache: Path) -> None:
    """Another source, or another flag, is another library."""
    text = "int answer(void) { return NUMBER; }\n"
    assert [4, 5] == [build.load("a", text, (f"-DNUMBER={n}",)).answer() for n in (4, 5)]
    assert 6 == build.load("a", answer(6)).answer()
    assert 3 == len(list(cache.iterdir()))


@needs_compiler
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_cache_that_others_can_write_to_is_not_used(cache: Path, mode: int) -> None:
    """Where others could exchange a library none is kept, nor loaded."""
    cache.mkdir(parents=True, mode=0o700)
    cache.chmod(mode)
    assert 3 == build.load("a", answer(3)).answer()
    assert [] == list(cache.iterdir())


@needs_compiler
def test_cache_below_a_directory_of_others_is_not_used(cache: Path) -> None:
    """A cache is not safe where others can exchange a directory on the way to it."""
    cache.parents[1].mkdir()
    cache.parents[1].chmod(0o777)
    assert 3 == build.load("a", answer(3)).answer()
    assert [] == list(cache.parents[1].iterdir())


@needs_compiler
def test_cache_behind_a_link_is_not_used(cache: Path, tmp_path: Path) -> None:
    """A link in the place of the cache is not followed."""
    cache.parent.mkdir(parents=True, mode=0o700)
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.symlink_to(tmp_path / "elsewhere")
    assert 3 == build.load("a", answer(3)).answer()
    assert [] == list((tmp_path / "elsewhere").iterdir())


@needs_compiler
@pytest.mark.parametrize("poison", ["writable", "linked", "damaged"])
def test_poisoned_library_is_not_loaded(
    cache: Path, poison: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A library that others could write, a link to one, or one that is damaged is made again."""
    build.load("a", answer(7))
    (kept,) = cache.iterdir()
    monkeypatch.setattr(build, "_loaded", {})
    other = tmp_path / "other.so"
    (tmp_path / "other.c").write_text(answer(66), encoding="utf-8")
    subprocess.run([build.compiler() or "", "-shared", "-fPIC", "-o", other, tmp_path / "other.c"], check=True)
    kept.unlink()
    if poison == "linked":
        kept.symlink_to(other)
    elif poison == "damaged":
        kept.write_bytes(b"\x7fELF")
        kept.chmod(0o700)
    else:
        shutil.copy(other, kept)
        kept.chmod(0o777)
    assert 7 == build.load("a", answer(7)).answer()


@needs_compiler
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_cache_of_another_user_is_not_used(cache: Path) -> None:
    """A cache that belongs to another user is not used."""
    cache.mkdir(parents=True, mode=0o700)
    os.chown(cache, 12345, 12345)
    assert 3 == build.load("a", answer(3)).answer()
    assert [] == list(cache.iterdir())


@needs_compiler
def test_two_processes_at_once(cache: Path) -> None:
    """Processes that make the same library at the same time do not disturb each other."""
    code = f"from qmodel.engines.native import build; print(build.load('a', {answer(8)!r}).answer())"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert ["8\n"] * 4 == [process.communicate()[0] for process in running]
    assert 1 == len(list(cache.iterdir()))


@needs_compiler
def test_cache_does_not_grow_for_ever(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more libraries than are kept the one that was not used for the longest time is removed."""
    monkeypatch.setattr(build, "KEPT", 2)
    for number in range(3):
        build.load("a", answer(number))
        for path in cache.iterdir():
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setattr(build, "_compile", None)
    assert [1, 2] == [build.load("a", answer(number)).answer() for number in (1, 2)]
    assert 2 == len(list(cache.iterdir()))
