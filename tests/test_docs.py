"""The documentation: what is taken from the code is as the code says, and what a page names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import generate
from qmodel import lang

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
RECORDS = sorted((DOCS / "decisions").glob("0*.md"))

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:docs|qmodel|specs|tests)/[\w/.-]*)(?:::(\w+))?`")


@pytest.mark.parametrize("name", generate.MAKERS)
def test_page_is_up_to_date(name: str) -> None:
    """A page is as docs/generate.py writes it: the words of the language, help, what the tutorial's commands print."""
    assert generate.made(name) == (DOCS / name).read_text(encoding="utf-8"), "run docs/generate.py"


def test_output_is_that_of_the_command() -> None:
    """What stands below a command is replaced by what it prints, and $? is what the command before it returned."""
    page = "Text.\n\n```console\n$ echo a; exit 3\nb\n$ echo $?\n```\n"
    assert "Text.\n\n```console\n$ echo a; exit 3\na\n$ echo $?\n3\n```\n" == generate.played(page)


def test_blocks_of_a_file_are_put_together() -> None:
    """Blocks of Python that name a file are its text, in the order of the page; other blocks are left alone."""
    page = "```python a.py\n1\n```\n```python\n2\n```\n```python a.py\n3\n```\n```console\n$ cat a.py\n```\n"
    assert page.replace("cat a.py\n", "cat a.py\n1\n3\n") == generate.played(page)


def test_every_word_of_the_language_is_on_its_page() -> None:
    """What a specification can import is described."""
    page = (DOCS / "language.md").read_text(encoding="utf-8")
    assert [] == [word for word in lang.__all__ if not re.search(rf"(?:### |- `@?){word}\b", page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file, and every path of this repository that a page names, is there."""
    text = page.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [path for path, _ in PATH.findall(text) if not (ROOT / path).exists()]
    assert [] == missing


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_decision_names_a_test(record: Path) -> None:
    """A decision has its five parts, and names tests that exist."""
    text = record.read_text(encoding="utf-8")
    parts = ["Question", "Decided", "Why", "Rules out", "Tests"]
    assert parts == re.findall(r"^\*\*([\w ]+)\.\*\*", text, re.MULTILINE)
    named = [(path, name) for path, name in PATH.findall(text.partition("**Tests.**")[2]) if name]
    assert named
    assert [] == [name for path, name in named if f"\ndef {name}(" not in (ROOT / path).read_text(encoding="utf-8")]


def test_decisions_are_listed() -> None:
    """The list of decisions has each record, in order."""
    listed = LINK.findall((DOCS / "decisions" / "README.md").read_text(encoding="utf-8"))
    assert [record.name for record in RECORDS] == listed
