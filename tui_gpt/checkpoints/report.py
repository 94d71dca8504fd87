"""Telling how a model's files became its parameters, once they have been read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tui_gpt.checkpoints.find import ModelSource
from tui_gpt.checkpoints.headers import WEIGHT_DTYPES
from tui_gpt.checkpoints.layouts.gpt2_names import Placement, Skipped
from tui_gpt.checkpoints.weights import LoadedWeights, read_weights
from tui_gpt.config import GPTConfig
from tui_gpt.records.loader_report import COMPUTED_IN, LoaderReport, SkippedRow, TensorRow
from tui_gpt.records.stages import stage_table
from tui_gpt.records.trace import ModelFacts
from tui_gpt.tokenization.tokenizer import CharacterTokenizer, GPT2Tokenizer, IdsOnly, Tokenizer

_SKIPPED = {
    "mask": "the causal mask, no weight",
    "masked_bias": "the value of masked scores, no weight",
    "tied": "the same numbers as wte.weight, stored again",
}


def inspect(source: ModelSource) -> LoaderReport:
    """Read a model as opening it does, and report.

    Raises:
        NotEnoughMemory: There is no room for the weights.
        DamagedModel: It cannot be opened.
    """
    return report_of(source, read_weights(source))


def report_of(source: ModelSource, loaded: LoadedWeights) -> LoaderReport:
    """Report what was read.

    Args:
        source: What was found.
        loaded: What became of it.
    """
    config = source.config
    if loaded.plan is None:
        rows, skipped = list(_drawn(config)), []
    else:
        unused = _unused(source)
        rows = [
            row
            for placement in loaded.plan.placements
            for row in _rows(placement, config, loaded.broken, unused)
        ]
        skipped = [_skipped(row) for row in loaded.plan.skipped]
    broken = [f"{key} {what}" for key, what in loaded.broken.items()]
    return LoaderReport(
        ModelFacts(source.name, config, source.n_parameters, source.kind),
        None if source.path is None else str(source.path),
        () if source.files is None else tuple(str(path) for path in source.files.paths),
        tuple(rows),
        tuple(skipped),
        config.tied,
        describe_tokenizer(source.tokenizer),
        (*broken, *source.notices, *source.remarks),
    )


def describe_tokenizer(tokenizer: Tokenizer) -> str:
    """Say in a few words how text becomes ids."""
    if isinstance(tokenizer, IdsOnly):
        return "none: ids only"
    if isinstance(tokenizer, CharacterTokenizer):
        return f"one token a character, {tokenizer.vocab_size:,} of them"
    if isinstance(tokenizer, GPT2Tokenizer):
        return f"GPT-2's, from this program: {tokenizer.vocab_size:,} ids"
    return f"byte pairs, from the model's folder: {tokenizer.vocab_size:,} ids"


def _rows(
    placement: Placement, config: GPTConfig, broken: Mapping[str, str], unused: str
) -> Iterator[TensorRow]:
    """Write one row a parameter."""
    entry, wanted = placement.entry, placement.wanted
    shape = wanted.shape[::-1] if wanted.transposed else wanted.shape
    count = len(wanted.parameters)
    shape = (shape[0] // count, *shape[1:])
    for i, parameter in enumerate(wanted.parameters):
        part = f"{i * shape[0]}…{(i + 1) * shape[0] - 1}"
        remarks = [broken.get(entry.key, "")]
        if parameter in ("wte.weight", "lm_head.weight"):
            remarks.append(unused)
        if parameter == "wte.weight" and config.tied:
            remarks.append("also the output head")
        yield TensorRow(
            entry.key,
            parameter,
            entry.shape,
            shape,
            WEIGHT_DTYPES[entry.dtype],
            wanted.transposed,
            prefix=entry.key.removesuffix(wanted.name),
            part=f"{'columns' if wanted.transposed else 'rows'} {part}" if count > 1 else "",
            remark="; ".join(remark for remark in remarks if remark),
        )


def _skipped(skipped: Skipped) -> SkippedRow:
    entry = skipped.entry
    dtype = WEIGHT_DTYPES.get(entry.dtype, entry.dtype.lower())
    return SkippedRow(entry.key, entry.shape, dtype, _SKIPPED[skipped.kind])


def _drawn(config: GPTConfig) -> Iterator[TensorRow]:
    """List the parameters of a model that has no file."""
    for stage in stage_table(config, 1):
        for parameter in stage.parameters:
            if not parameter.shared:
                shape = parameter.shape
                yield TensorRow(
                    None,
                    parameter.name,
                    shape,
                    shape,
                    COMPUTED_IN,
                    transposed=False,
                    remark="drawn from a seed",
                )


def _unused(source: ModelSource) -> str:
    """Say which rows of the table stand for no token."""
    known, rows = source.tokenizer.vocab_size, source.config.vocab_size
    if not 0 < known < rows:
        return ""
    return f"rows {known}…{rows - 1} stand for no token"
