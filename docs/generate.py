#!/usr/bin/env python3
"""Write the parts of the documentation that the code says better: run it after a change, and commit what it wrote.

- language.md, below its mark: the words of `qmodel.lang`, from their docstrings.
- commands.md, below its mark: `--help` of every command.
- tutorial.md: what the commands in it print. Its blocks of Python go to the file that is named beside them, one below
  the other, and its commands run there. Seconds are printed as 0.00.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from click.testing import CliRunner

from qmodel import lang
from qmodel.cli.main import cli
from qmodel.frontend.declarations import BUILTIN, OF_PACKETS

DOCS = Path(__file__).parent
LANG = Path(lang.__file__).parent
MARK = "<!-- Below this line everything is written by docs/generate.py. -->\n"
WIDTH = 80


def main() -> None:
    """Write every page that is not up to date, and name it."""
    for name in MAKERS:
        path, new = DOCS / name, made(name)
        if new != path.read_text(encoding="utf-8"):
            path.write_text(new, encoding="utf-8")
            click.echo(f"{path} is written anew")


def made(name: str) -> str:
    """Return a page as it should be."""
    return MAKERS[name]((DOCS / name).read_text(encoding="utf-8"))


def _below(page: str, parts: Iterator[str]) -> str:
    """Return a page with what stands below its mark replaced."""
    kept, mark, _ = page.partition(MARK)
    assert mark, f"the page has no line {MARK}"
    return kept + MARK + "\n" + "\n".join(parts)


# --- commands -------------------------------------------------------------------------------------------------------


def commands(page: str) -> str:
    """Return the page of the commands."""
    return _below(page, _helps())


def _helps() -> Iterator[str]:
    for name in ["", *sorted(cli.commands)]:
        arguments = [name, "--help"] if name else ["--help"]
        text = CliRunner().invoke(cli, arguments, prog_name="qmodel", terminal_width=WIDTH).output
        yield f"## {f'qmodel {name}'.strip()}\n\n```text\n{text.rstrip()}\n```\n"


# --- the language ---------------------------------------------------------------------------------------------------


def language(page: str) -> str:
    """Return the page of the language."""
    return _below(page, _words())


def _words() -> Iterator[str]:
    yield "## Properties that come with the language\n"
    for name, meaning in BUILTIN.items():
        yield _item(name, meaning + (" (in a model with packets)" if name in OF_PACKETS else ""))
    declared = _parse("declare.py")
    yield "\n## Declarations\n"
    for node in declared.body:
        if isinstance(node, ast.ClassDef) and node.name in lang.__all__:
            yield from _declaration(node)
    yield "## Decorators\n"
    for node in declared.body:
        if isinstance(node, ast.FunctionDef) and node.name in lang.__all__ and not _is_overload(node):
            yield _item(f"@{node.name}{_signature(node)}".removesuffix("()"), _doc(node))
    yield "\n## Values\n"
    for node in _parse("values.py").body:
        if isinstance(node, ast.ClassDef):
            yield _item(node.name, _doc(node))
            yield from (_item(f".{name}", doc, "  ") for name, doc in _documented(node.body))
    yield from (_item(name, doc) for name, doc in _documented(_parse("__init__.py").body))
    yield from _primitives()


def _parse(name: str) -> ast.Module:
    return ast.parse((LANG / name).read_text(encoding="utf-8"))


def _doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _declaration(node: ast.ClassDef) -> Iterator[str]:
    functions = {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}
    init = functions.get("__init__")
    yield f"### {node.name}{_signature(init) if init else ''}\n\n{_doc(node)}\n"
    listed = [_item(f"m.{f.name}{_signature(f)}", _doc(f)) for f in functions.values() if f.name[0] != "_"]
    if listed:
        yield from [*listed, ""]


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield each name that a string below its declaration documents."""
    for statement, below in pairwise(body):
        match statement, below:
            case (
                (ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])),
                ast.Expr(value=ast.Constant(value=str() as doc)),
            ):
                yield name, doc


def _primitives() -> Iterator[str]:
    """Yield the primitives, under the headings that the comments of their file are."""
    text = (LANG / "primitives.py").read_text(encoding="utf-8")
    heads = {n: found[1] for n, line in enumerate(text.splitlines()) if (found := re.match(r"# --- (.*?) -+$", line))}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for line in [n for n in heads if n < node.lineno]:
            head = heads.pop(line)
            yield f"\n## {head[0].upper()}{head[1:]}\n"
        yield _item(node.name + _signature(node), _doc(node))


def _item(word: str, doc: str, indent: str = "") -> str:
    text = f"- `{word}`: {' '.join(doc.split())}"
    inner = indent + "  "
    return textwrap.fill(
        text, 118, initial_indent=indent, subsequent_indent=inner, break_long_words=False, break_on_hyphens=False
    )


def _signature(node: ast.FunctionDef) -> str:
    """Return the arguments of a function without their types, and without what nobody writes."""
    arguments = node.args
    for argument in (*arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    if arguments.args and arguments.args[0].arg in {"self", "function"}:
        arguments.defaults = arguments.defaults[: len(arguments.args) - 1]
        arguments.args.pop(0)
    return f"({ast.unparse(arguments)})"


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)


# --- the tutorial ---------------------------------------------------------------------------------------------------

_BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS = re.compile(r"\b\d+\.\d\d s\b")


def played(page: str) -> str:
    """Return a page with its commands run, and what they print below each."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        command = folder / "bin" / "qmodel"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m qmodel "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        return _BLOCK.sub(lambda block: _block(block, folder), page)


def _block(block: re.Match[str], folder: Path) -> str:
    kind, file, text = block.groups()
    if kind == "python" and file:
        with (folder / file).open("a", encoding="utf-8") as spec:
            spec.write(text)
    if kind != "console":
        return block[0]
    status, lines = 0, ["```console"]
    for line in text.splitlines():
        if line.startswith("$ "):
            status, output = _run(line[2:], status, folder)
            lines += [line, *output.splitlines()]
    return "\n".join([*lines, "```"])


def _run(command: str, status: int, folder: Path) -> tuple[int, str]:
    """Run a line of the shell, whose $? is the status that the one before left behind."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603  the commands are those of the tutorial
        ["/bin/sh", "-c", f"(exit {status})\n{command}"],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": str(WIDTH), "LC_ALL": "C.UTF-8"},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    return done.returncode, _SECONDS.sub("0.00 s", done.stdout)


MAKERS: dict[str, Callable[[str], str]] = {"language.md": language, "commands.md": commands, "tutorial.md": played}
"""The pages that are generated in part: from the page as it is to the page as it should be."""

if __name__ == "__main__":
    main()
