"""`qmodel list`: the models that there are."""

from __future__ import annotations

import click

from qmodel.cli.specs import find, shipped_names


@click.command("list")
@click.argument("models", nargs=-1)
def list_models(models: tuple[str, ...]) -> int:
    """List models, their variants, and the kernel commits that these stand for.

    MODELS are names or files; all that come with qmodel where none is given.
    """
    blocks = []
    for name in models or tuple(shipped_names()):
        for spec in find(name):
            first = spec.doc.splitlines()[0] if spec.doc else ""
            lines = [f"{spec.model}: {first}"]
            width = max(len(v.name) for v in spec.variants)
            for variant in spec.variants:
                kernel = f"[{variant.kernel}]" if str(variant.kernel) else ""
                doc = variant.doc.splitlines()[0] if variant.doc else ""
                lines.append(f"  {variant.name:{width}}  {doc} {kernel}".rstrip())
            blocks.append("\n".join(lines))
    click.echo("\n\n".join(blocks))
    return 0
