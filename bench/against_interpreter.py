"""How much faster the generated code searches than the interpreter that defines what a program means.

    python bench/against_interpreter.py

Both search `requeue head` with 2 CPUs, 2 packets each and 2 busy answers in the same run; the ratio is what counts.
"""

from __future__ import annotations

import time

from qmodel.cli.running import Configuration
from qmodel.cli.specs import choose_variants, find
from qmodel.engines.options import Options
from qmodel.engines.python.explore import Explorer
from qmodel.ir.interpreter import Interpreter


def main() -> None:
    """Print states, seconds and the ratio."""
    spec, variant = choose_variants(find("requeue"), ("head",))[0]
    program = Configuration(spec, variant, "default", "sc", {"packets": 2}).program()
    explorer = Explorer(program, Options())
    started = time.perf_counter()
    found = explorer.run()
    generated = time.perf_counter() - started
    started = time.perf_counter()
    interpreter = Interpreter(program)
    seen = {interpreter.initial()}
    frontier = list(seen)
    while frontier:
        reached = [o.state for s in frontier for _, _, o in interpreter.enabled(s) if o.state is not None]
        frontier = [s for s in dict.fromkeys(reached) if s not in seen]
        seen.update(frontier)
    interpreted = time.perf_counter() - started
    print(f"states {found.states:,} and {len(seen):,}")
    print(f"generated code {generated:.2f} s, interpreter {interpreted:.2f} s, ratio {interpreted / generated:.0f}")


if __name__ == "__main__":
    main()
