"""`qmodel new`: a small specification to start from."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from qmodel import lang
from qmodel.cli.errors import Exit, UsageError

_TEMPLATE = files("qmodel.cli") / "template.py.txt"
_NEXT = """\
{path} has a lost wakeup, in a variant with it and in one without.

  qmodel check {shown}
      tries every interleaving of both, and draws the one that breaks the first
  qmodel show {shown} --thread queue_work
      the steps of a thread
  qmodel explore {shown} --variant clear-last
      walks through the states by hand
  qmodel diff {shown} clear-last clear-first
      what the fix changes: source, steps, verdicts
  qmodel gate {shown}
      what CI runs: every variant as its `expect` says
"""


@click.command("new")
@click.argument("name")
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path(), help="Where; else right here.")
def new(name: str, *, folder: Path) -> int:
    """Write NAME.py: a small commented specification that runs.

    NAME is a Python name, such as lost_wakeup. A file that exists is not
    overwritten.
    """
    model = class_name(name)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; make it first, or give another one with --dir")
    path = folder / f"{name}.py"
    text = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(name=name, model=model)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already; choose another name, or remove it first") from None
    shown = str(path) if path.parent != Path() else f"./{path}"
    click.echo(_NEXT.format(path=path, shown=shown), nl=False)
    return Exit.AS_EXPECTED


def class_name(name: str) -> str:
    """Return the name of the model's class in a file: `LostWakeup` in lost_wakeup.py. Raises UsageError."""
    if not (re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and not keyword.iskeyword(name)):
        words = re.findall(r"[A-Za-z0-9]+", name.removesuffix(".py").rpartition("/")[2])
        likely = "_".join(words).lower().lstrip("0123456789_") or "lost_wakeup"
        likely += "_model" * keyword.iskeyword(likely)
        raise UsageError(f"`{name}` is no name for a model: letters, digits and _ only; write `qmodel new {likely}`")
    found = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    template = _TEMPLATE.read_text(encoding="utf-8")
    if found in lang.__all__ or re.search(rf"^class {found}\(", template, re.MULTILINE):
        raise UsageError(
            f"a model cannot be called {found}, which means something else; write `qmodel new {name}_model`"
        )
    return found
