"""Names and comments in C for what a specification calls things."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from qmodel.ir.program import Site

_RESERVED = re.compile(
    r"""(auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long
    |register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while
    |asm|typeof|offsetof|s|t|out|picks|waits|passed|(qm|q|get|put|at|go|load|save|table|places|steps)_.*|.*_t
    |_[A-Z_].*|[A-Z][A-Z0-9_]*)""",
    re.VERBOSE,
)


@dataclass
class Names:
    """Names in C for names of a specification, each once. alone: they stand in C without anything before them."""

    alone: bool
    known: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> str:
        if name not in self.known:
            short = name if name.startswith(("%", "__")) else name.rpartition(".")[2]
            plain = re.sub(r"[^0-9A-Za-z_]", "_", short)
            plain = f"{plain}_" if self.alone and _RESERVED.fullmatch(plain) else plain
            unique, count = plain, 1
            while unique in self.taken:
                count += 1
                unique = f"{plain}_{count}"
            self.known[name] = unique
            self.taken.add(unique)
        return self.known[name]


def comment(text: str) -> str:
    """Return a text as it may stand in a comment: on one line, and without an end of it."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *")


def where(site: Site) -> str:
    """Return a place in a specification as a comment has it: where it is, and what stands there."""
    return comment(f"{site.file}:{site.line}: {site.function}(): {site.source}" if site.file else site.function)
