"""Telling how a model's files became its parameters, once they have been read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tui_gpt.checkpoints.find import ModelSource
from tui_gpt.checkpoints.headers import WEIGHT_DTYPES
from tui_gpt.checkpoints.layouts.layout import HEAD, TABLE, owned_parameters
from tui_gpt.checkpoints.placement import Placement, Skipped
from tui_gpt.checkpoints.weights import LoadedWeights
from tui_gpt.config import GPTConfig
from tui_gpt.records.loader_report import COMPUTED_IN, LoaderReport, SkippedRow, TensorRow
from tui_gpt.records.trace import ModelFacts

_SKIPPED = {
    "mask": "the causal mask, no weight",
    "masked_bias": "the value of masked scores, no weight",
    "tied": "the same numbers as wte.weight, stored again",
    "frequencies": "the rotation's frequencies, which the config gives",
}


def report_of(
    source: ModelSource, loaded: LoadedWeights, tokenizer: str, n_known: int, notices: Sequence[str]
) -> LoaderReport:
    """Report what was read.

    Args:
        source: What was found.
        loaded: What became of it.
        tokenizer: The tokenizer in a few words.
        n_known: Ids from 0 to this, exclusive, have a meaning.
        notices: What was said about the tokenizer.
    """
    config = source.config
    if loaded.plan is None:
        rows, skipped = list(_drawn(config)), []
    else:
        unused = (
            f"rows {n_known}…{config.vocab_size - 1} stand for no token"
            if 0 < n_known < config.vocab_size
            else ""
        )
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
        tokenizer,
        (*broken, *source.notices, *notices, *source.remarks),
    )


def _rows(
    placement: Placement, config: GPTConfig, broken: Mapping[str, str], unused: str
) -> Iterator[TensorRow]:
    """Write one row a parameter."""
    entry, wanted = placement.entry, placement.wanted
    arrangement = wanted.arrangement
    shape = wanted.shape[::-1] if arrangement.transposed else wanted.shape
    count = len(wanted.parameters)
    shape = (shape[0] // count, *shape[1:])
    for i, parameter in enumerate(wanted.parameters):
        part = ""
        if count > 1 and (arrangement.transposed or not arrangement.note):
            lines = "columns" if arrangement.transposed else "rows"
            part = f"{lines} {i * shape[0]}…{(i + 1) * shape[0] - 1}"
        remarks = [broken.get(entry.key, "")]
        if parameter in (TABLE, HEAD):
            remarks.append(unused)
        if parameter == TABLE and config.tied:
            remarks.append("also the output head")
        yield TensorRow(
            entry.key,
            parameter,
            entry.shape,
            shape,
            WEIGHT_DTYPES.get(entry.dtype, entry.dtype),
            arrangement.transposed,
            prefix=entry.key.removesuffix(wanted.name),
            part=part,
            arrangement=arrangement.note,
            remark="; ".join(remark for remark in remarks if remark),
        )


def _skipped(skipped: Skipped) -> SkippedRow:
    entry = skipped.entry
    dtype = WEIGHT_DTYPES.get(entry.dtype, entry.dtype.lower())
    return SkippedRow(entry.key, entry.shape, dtype, _SKIPPED[skipped.kind])


def _drawn(config: GPTConfig) -> Iterator[TensorRow]:
    """List the parameters of a model that has no file."""
    for parameter in owned_parameters(config):
        yield TensorRow(
            None,
            parameter.name,
            parameter.shape,
            parameter.shape,
            COMPUTED_IN,
            transposed=False,
            remark="drawn from a seed",
        )
