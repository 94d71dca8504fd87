"""`tui-gpt budget`: where a model's parameters sit, and what they take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from tui_gpt.cli.options import Globals, global_options
from tui_gpt.config import PRESETS, GPTConfig, Positions
from tui_gpt.errors import UsageError
from tui_gpt.files import BUNDLED_MODELS

if TYPE_CHECKING:
    from tui_gpt.records.budget.counts import StateDictCount

_NAMES = (*PRESETS, *BUNDLED_MODELS)


@click.command(
    help="Count the parameters of a shape, part by part, and the bytes they take. Start from a "
    f"PRESET ({', '.join(_NAMES)}; default gpt2) or from a model, and change what you like."
)
@click.argument("preset", metavar="[PRESET]", required=False)
@click.option("-m", "--model", metavar="MODEL", help="Count a model's real tensors.")
@click.option("--n-layer", type=int, metavar="N", help="Blocks.")
@click.option("--n-embd", type=int, metavar="N", help="Width of the residual stream.")
@click.option("--n-head", type=int, metavar="N", help="Heads in each block.")
@click.option("--n-inner", type=int, metavar="N", help="Hidden units of each FFN.")
@click.option(
    "--expansion", type=float, metavar="X", help="The same as a multiple: round(X · n_embd)."
)
@click.option("--vocab-size", type=int, metavar="N", help="Tokens of the vocabulary.")
@click.option("--block-size", type=int, metavar="N", help="Longest context.")
@click.option("--tied/--untied", default=None, help="The token table is the head, or not.")
@click.option("--qkv-bias/--no-qkv-bias", default=None, help="Biases of q, k and v.")
@click.option("--bias/--no-bias", default=None, help="Every bias, q k v and norms included.")
@click.option(
    "--positions", type=click.Choice(["learned", "sinusoidal"]), help="A table, or computed."
)
@click.option("--batch", type=int, default=1, metavar="B", show_default=True, help="Rows at once.")
@click.option("--context", type=int, metavar="T", help="Tokens at once; default block_size.")
@click.option("--compare", metavar="PRESET", help="Put another shape beside it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@global_options
def budget(
    *,
    preset: str | None,
    model: str | None,
    n_inner: int | None,
    expansion: float | None,
    bias: bool | None,
    qkv_bias: bool | None,
    batch: int,
    context: int | None,
    compare: str | None,
    as_json: bool,
    common: Globals,
    **sizes: int | bool | Literal["learned", "sinusoidal"] | None,
) -> None:
    """Build the shape, count it, print it; nothing is printed of a shape that cannot be."""
    if preset is not None and model is not None:
        raise UsageError(f"give a preset ({preset}) or a model (-m {model}), not both")
    if n_inner is not None and expansion is not None:
        raise UsageError("give --n-inner or --expansion, not both")
    if bias is False and qkv_bias:
        raise UsageError("--no-bias drops the q k v biases too; leave --qkv-bias out")
    base, found = _model(model) if model is not None else (_shape(preset or "gpt2"), None)
    changes = {key: value for key, value in sizes.items() if value is not None}
    config = _changed(base, changes, n_inner, expansion, bias, qkv_bias)
    name = model or preset or "gpt2"
    if config != base:
        name, found = f"{name}, changed", None
    other = None if compare is None else (compare, _shape(compare))
    _print(name, config, batch, context, found, other, as_json=as_json, common=common)


def _print(
    name: str,
    config: GPTConfig,
    batch: int,
    context: int | None,
    found: StateDictCount | None,
    other: tuple[str, GPTConfig] | None,
    *,
    as_json: bool,
    common: Globals,
) -> None:
    from tui_gpt.cli.output import drawn, write
    from tui_gpt.records.budget.memory import check_batch

    tokens = config.block_size if context is None else context
    check_batch(config, batch=batch, context=tokens)
    if other is not None and context is not None:
        check_batch(other[1], batch=batch, context=context)
    if as_json:
        from tui_gpt.records.export.budget_json import budget_object, budget_text

        document = budget_object(name, config, batch=batch, context=tokens, found=found)
        if other is not None:
            tokens = other[1].block_size if context is None else context
            document["other"] = budget_object(*other, batch=batch, context=tokens)
        write([*budget_text(document), "\n"])
        return
    from tui_gpt.views.commands.budget import budget_lines

    profile = common.profile()
    lines = budget_lines(
        name, config, batch=batch, context=tokens, state_dict=found, other=other, profile=profile
    )
    write(drawn(lines, profile))


def _shape(name: str) -> GPTConfig:
    """Give the shape of a preset, a bundled model's included."""
    if name in PRESETS:
        return PRESETS[name]
    if name in BUNDLED_MODELS:
        from tui_gpt.checkpoints.find import find_model

        return find_model(name).config
    raise UsageError(f"no preset {name!r}; there are {', '.join(_NAMES)}; -m takes a model")


def _model(name: str) -> tuple[GPTConfig, StateDictCount | None]:
    """Give a model's shape and what is in its file."""
    from tui_gpt.checkpoints.find import find_model
    from tui_gpt.checkpoints.parameter_count import count_state_dict

    source = find_model(name)
    return source.config, count_state_dict(source)


def _changed(
    base: GPTConfig,
    changes: dict[str, Any],
    n_inner: int | None,
    expansion: float | None,
    bias: bool | None,
    qkv_bias: bool | None,
) -> GPTConfig:
    """Change what was asked for; the feed-forward network keeps its expansion.

    Raises:
        ImpossibleShape: No model has these sizes.
    """
    from tui_gpt.records.budget.counts import inner_width

    width = changes.get("n_embd", base.n_embd)
    if n_inner is None:
        if expansion is None and width == base.n_embd:
            n_inner = base.n_inner
        else:
            times = base.n_inner / base.n_embd if expansion is None else expansion
            n_inner = inner_width(times, max(width, 1))
    if bias is None:
        bias = base.bias
    if qkv_bias is None:
        qkv_bias = base.qkv_bias or (bias and not base.bias)
    positions: Positions = changes.pop("positions", base.positions)
    return replace(
        base, **changes, n_inner=n_inner, bias=bias, qkv_bias=qkv_bias, positions=positions
    )
