"""Litmus tests in C, as herd7 reads them for the Linux kernel: small programs that ask what a machine may do.

`syntax` reads the text, `condition` is what it asks of final states, `primitives` says what may be called, and
`compiler` gives the program.
"""

from __future__ import annotations

from qmodel.frontend.litmus.compiler import build
from qmodel.frontend.litmus.syntax import Litmus, parse, read

__all__ = ["Litmus", "build", "parse", "read"]
