"""Who may import whom: the import-linter contracts of pyproject.toml."""

import subprocess
import sys
from itertools import permutations
from pathlib import Path

ROOT = Path(__file__).parents[1]

# The arrows that exist. The command line may use everything.
PACKAGES = {"cli", "views", "engines", "passes", "frontend", "specs", "lang", "ir", "result"}
ARROWS = {("cli", package) for package in PACKAGES - {"cli"}} | {
    ("views", "result"),
    ("engines", "passes"),
    ("engines", "ir"),
    ("engines", "result"),
    ("passes", "ir"),
    ("frontend", "lang"),
    ("frontend", "ir"),
    ("specs", "lang"),
    ("lang", "ir"),
}


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    """Judge the package qmodel in a directory by the contracts of this checkout."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", str(ROOT / "pyproject.toml")]
    return subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True)


def draw(tree: Path, arrows: set[tuple[str, str]]) -> None:
    """Make a package qmodel that has these imports and nothing else."""
    for package in PACKAGES:
        init = tree / "qmodel" / package / "__init__.py"
        init.parent.mkdir(parents=True)
        init.write_text("".join(f"import qmodel.{to}\n" for source, to in sorted(arrows) if source == package))
    (tree / "qmodel" / "__init__.py").touch()


def test_contracts_are_kept() -> None:
    """No module of qmodel imports what it may not know."""
    done = lint(ROOT)
    assert 0 == done.returncode, done.stdout


def test_contracts_allow_each_arrow(tmp_path: Path) -> None:
    """All arrows of the design may be there at once."""
    draw(tmp_path, ARROWS)
    done = lint(tmp_path)
    assert 0 == done.returncode, done.stdout


def test_contracts_forbid_each_other_arrow(tmp_path: Path) -> None:
    """Every import that is no arrow of the design is named."""
    others = set(permutations(PACKAGES, 2)) - ARROWS
    draw(tmp_path, others)
    report = lint(tmp_path).stdout
    assert set() == {(source, to) for source, to in others if f"qmodel.{source} -> qmodel.{to} (" not in report}
