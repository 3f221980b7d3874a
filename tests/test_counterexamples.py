"""The stored counterexamples: there is one for every refuted expectation, and each still shows what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qmodel.cli.gate import counterexamples, expectations, file_stem
from qmodel.cli.replay import read, retake
from qmodel.cli.running import run
from qmodel.cli.specs import find, shipped_names
from qmodel.engines.options import Options

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "counterexamples"
FILES = sorted(STORED.glob("*/*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_each_stored_counterexample_replays(file: Path) -> None:
    """Every step of a stored counterexample can be taken, reads as it did, and ends in the violation."""
    stored = read(file)
    trace = retake(stored, file)
    assert len(stored.moves) == len(trace.steps)
    picture = file.with_suffix(".txt").read_text(encoding="utf-8")
    assert " ".join(trace.story) in " ".join(picture.split())


def test_every_refuted_expectation_has_its_counterexample_and_no_other_is_stored() -> None:
    """The files in counterexamples/ are exactly those that the expectations ask for."""
    wanted = set()
    for name in shipped_names():
        for configuration in expectations(find(name)):
            for expectation in configuration.variant.expectations:
                same = (expectation.scenario, expectation.params) == (configuration.scenario, configuration.given)
                if same and configuration.memory in expectation.memories:
                    folder = STORED / configuration.spec.model
                    wanted |= {folder / f"{file_stem(configuration, p)}.json" for p in expectation.refuted}
    assert sorted(wanted) == FILES


def test_the_counterexamples_of_requeue_are_what_the_gate_writes() -> None:
    """Searching again gives the stored files of requeue, byte for byte."""
    done = [(c, run(c, "python", Options())) for c in expectations(find("requeue"))]
    written = dict(counterexamples(done, STORED))
    assert {path: path.read_text(encoding="utf-8") for path in written} == written


def test_the_first_screen_of_the_readme_is_what_the_command_prints() -> None:
    """The picture in the README is the output of the command that it names."""
    words = ["check", "requeue", "--variant", "tail", "--scenario", "queued", "--format", "kernel"]
    done = subprocess.run([sys.executable, "-m", "qmodel", *words], capture_output=True, text=True, check=False)
    assert done.stdout in (ROOT / "README.md").read_text(encoding="utf-8")
