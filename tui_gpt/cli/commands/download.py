"""`tui-gpt download`: the one command that uses the network."""

from __future__ import annotations

import sys

import click

from tui_gpt.cli.environment import glyph_set
from tui_gpt.cli.options import Globals, global_options


@click.command(
    help="Fetch the GPT-2 model NAME, such as gpt2, from the Hugging Face hub into the local "
    "cache; then -m NAME opens it, without a network. This is the one command that uses the "
    "network; it needs the extra `hub`. Ctrl-C stops it, and the next try goes on from there.",
)
@click.argument("name", metavar="NAME")
@global_options
def download(*, name: str, common: Globals) -> None:
    """Fetch, then say how to open it."""
    from tui_gpt.checkpoints import hub_cache
    from tui_gpt.views.text import sanitize, transliterate

    glyphs = glyph_set(sys.stderr.encoding)

    def say(line: str) -> None:
        click.echo(transliterate(sanitize(line), glyphs), err=True)

    bars = sys.stderr.isatty() and not common.ascii_only
    folder = hub_cache.download(name, say, bars=bars)
    say(f"{name} is in {folder}")
    click.echo(f"tui-gpt explore -m {sanitize(name)}")
