"""The command `qmodel`."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

import click

from qmodel import __version__
from qmodel.cli import bench, bound, check, diff, explore, gate, listing, litmus, new, replay, show, simulate
from qmodel.cli.errors import Exit, UsageError
from qmodel.frontend.configure import ParameterError
from qmodel.frontend.diagnostics import SpecError
from qmodel.passes.memory import UnknownMemoryError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, prog_name="qmodel")
def cli() -> None:
    """Check lock-free and half-locked kernel algorithms, for every interleaving.

    Exit code: 0 every verdict is as expected, 1 some verdict is not, 2 wrong usage
    or specification, 3 inconclusive, 130 interrupted.
    """


for command in (check.check, gate.gate, listing.list_models, show.show, replay.replay, bench.bench):
    cli.add_command(command)
for command in (bound.bound, diff.diff, explore.explore, litmus.litmus, new.new, simulate.simulate):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and exit: every error that a user can make ends in one message and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name in a specification may not be ASCII, as the terminal is
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(arguments, prog_name="qmodel", standalone_mode=False)
    except SystemExit as error:  # click ends so where nobody reads what it writes
        sys.exit(Exit.UNREAD if error.code == 1 else error.code)
    except click.exceptions.Abort:
        _end("interrupted", Exit.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except SpecError as error:
        count = len(error.diagnostics)
        _end(f"{error}\n\n{count} mistake{'s' * (count != 1)} in the specification", Exit.USAGE)
    except (UsageError, ParameterError, UnknownMemoryError) as error:
        _end(f"qmodel: {error}", Exit.USAGE)
    except KeyboardInterrupt:
        _end("interrupted", Exit.INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _forget_output()
        _end(f"qmodel: {where}{error.strerror or error}", Exit.USAGE)
    except RecursionError:
        _end("qmodel: what is to be read here is nested too deeply; split it up", Exit.USAGE)
    sys.exit(code if isinstance(code, int) else 0)


def _forget_output() -> None:
    """Drop what standard output did not take, for example on a full disk: it would be tried again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(message: str, code: Exit) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)
