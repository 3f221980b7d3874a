"""What the archives contain that pip installs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPECS = sorted(f"qmodel/specs/{path.name}" for path in (ROOT / "qmodel" / "specs").glob("*.py"))


def build(target: str, source: Path, out: Path) -> Path:
    """Build an archive with what is installed here: neither the network nor the source tree is touched."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out], cwd=source, check=True)
    (archive,) = out.iterdir()
    return archive


def unpack(module: str, archive: Path, out: Path) -> None:
    """Unpack an archive with the module of the standard library that reads it."""
    subprocess.run([sys.executable, "-m", module, "-e", archive, out], check=True)


def names(wheel: Path) -> list[str]:
    """The files of a wheel, sorted, each as often as it is there."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_wheel_has_each_spec_once(wheel: Path) -> None:
    """A wheel has every spec once, as qmodel/specs, although a checkout shows it under two names."""
    assert SPECS
    assert SPECS == [name for name in names(wheel) if "specs/" in name]


def test_wheel_is_typed(wheel: Path) -> None:
    """A wheel says that its types are to be used."""
    assert "qmodel/py.typed" in names(wheel)


def test_wheel_runs_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Every spec can be imported from a wheel that was unpacked elsewhere."""
    unpack("zipfile", wheel, tmp_path)
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in SPECS]
    code = f"import {', '.join(modules)}; print(qmodel.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"{tmp_path / 'qmodel' / '__init__.py'}\n" == done.stdout


def test_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """A wheel that is built from the source archive has the files of one that is built from a checkout."""
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    unpack("tarfile", sdist, tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert names(wheel) == names(build("wheel", source, tmp_path / "wheel"))
