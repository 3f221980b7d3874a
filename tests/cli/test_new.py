"""`qmodel new`: a specification to start from, which runs and says the truth about itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support import check_file, refuted
from tests.test_packaging import ROOT, build, names


@pytest.fixture
def written(qmodel: Command, tmp_path: Path) -> Path:
    """A specification that the command has written."""
    assert 0 == qmodel("new", "lost_wakeup", "--dir", tmp_path).code
    return tmp_path / "lost_wakeup.py"


def test_each_variant_is_checked_as_expected(qmodel: Command, written: Path) -> None:
    """`qmodel check` refutes the variant that is wrong, proves the one that is right, and expects both."""
    done = qmodel("check", written, "--json")
    found = [(run["variant"], run["verdict"], run["as_expected"]) for run in json.loads(done.out)["runs"]]
    assert 0 == done.code
    assert [("clear-last", "refuted", True), ("clear-first", "holds", True)] == found


def test_gate_is_green(qmodel: Command, written: Path) -> None:
    """Every expectation in the file is met, under every memory model that it names."""
    done = qmodel("gate", written, "--json")
    runs = json.loads(done.out)["runs"]
    assert 0 == done.code
    assert {"sc", "tso", "weak"} == {run["memory"] for run in runs}
    assert all(run["as_expected"] for run in runs)


def test_each_command_that_it_suggests_runs(qmodel: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is what to run next, and each of it does run."""
    monkeypatch.chdir(tmp_path)
    done = qmodel("new", "my_lock")
    commands = [line.split()[1:] for line in done.out.splitlines() if line.startswith("  qmodel ")]
    assert ["check", "show", "explore", "diff", "gate"] == [words[0] for words in commands]
    assert [0] * 5 == [qmodel(*words).code for words in commands]


def test_output_fits_a_terminal(qmodel: Command, tmp_path: Path) -> None:
    """Nothing that is printed about a file in this folder is wider than 80 columns."""
    done = qmodel("new", "lost_wakeup", "--dir", tmp_path)
    lines = done.out.replace(f"{tmp_path}/", "").splitlines()
    assert [] == [line for line in lines if len(line) > 80]


def test_model_is_named_after_the_file(qmodel: Command, tmp_path: Path) -> None:
    """The model's class and name are those of the file."""
    qmodel("new", "busy_list2", "--dir", tmp_path)
    assert "class BusyList2(Model):" in (tmp_path / "busy_list2.py").read_text(encoding="utf-8").splitlines()
    assert "busy-list2: Work that a softirq does." in qmodel("list", tmp_path / "busy_list2.py").out.splitlines()


def test_nothing_is_overwritten(qmodel: Command, written: Path) -> None:
    """A file that exists is left as it is."""
    written.write_text("mine", encoding="utf-8")
    done = qmodel("new", "lost_wakeup", "--dir", written.parent)
    assert (2, "") == (done.code, done.out)
    assert f"qmodel: {written} exists already; choose another name, or remove it first\n" == done.err
    assert "mine" == written.read_text(encoding="utf-8")


def test_folder_must_exist(qmodel: Command, tmp_path: Path) -> None:
    """A folder that does not exist is not made."""
    done = qmodel("new", "lost_wakeup", "--dir", tmp_path / "none")
    assert 2 == done.code
    assert f"qmodel: {tmp_path / 'none'} is no folder; make it first, or give another one with --dir\n" == done.err


@pytest.mark.parametrize(
    "name", ["a-b", "lost wakeup", "class", "foo.py", "x/y", "9lives", "", "_", "\u00e9t\u00e9", "model", "state"]
)
def test_a_bad_name_is_answered_with_a_good_one(qmodel: Command, tmp_path: Path, name: str) -> None:
    """A name that is no identifier, or means something in a specification, is refused; the one proposed is not."""
    done = qmodel("new", name, "--dir", tmp_path)
    assert (2, "", []) == (done.code, done.out, list(tmp_path.iterdir()))
    proposed = done.err.rpartition("`qmodel new ")[2].removesuffix("`\n")
    assert 0 == qmodel("new", proposed, "--dir", tmp_path).code
    assert 0 == qmodel("list", tmp_path / f"{proposed}.py").code


def test_things_to_try_come_out_as_said(written: Path) -> None:
    """The changes that the last lines of the file propose have the effects that they promise."""
    text = written.read_text(encoding="utf-8")
    unlocked = text.replace("        spin_lock(m.lock)\n", "").replace("        spin_unlock(m.lock)\n", "")
    written.write_text(unlocked, encoding="utf-8")
    assert "race" in refuted(check_file(written, "clear-first"))
    written.write_text(text.replace("high=cpus, ", "high=1, "), encoding="utf-8")
    assert {"domain"} == refuted(check_file(written, "clear-first"))


def test_wheel_has_the_template(tmp_path: Path) -> None:
    """The template is in the wheel: `qmodel new` works where qmodel is installed."""
    assert "qmodel/cli/template.py.txt" in names(build("wheel", ROOT, tmp_path))
