"""A whole trace in one file, opened again with numpy alone: no torch, no weights.

One safetensors file: each stage under its id, and in the header's metadata, under `tui-gpt`,
one JSON object with schema, config, prompt, tokens, prediction, program version and the
SHA-256 of the weights.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from tui_gpt import __version__
from tui_gpt.config import GPTConfig
from tui_gpt.errors import DamagedRecording, MissingStage, TuiGPTError
from tui_gpt.files import write_whole
from tui_gpt.records.stages import count_parameters, find_stage, stage_table
from tui_gpt.records.tensors import StageTensor, Values
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run, Trace

SCHEMA = 1
_KEY = "tui-gpt"

_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading a header raises where it is not what was written."""


_KEPT = 4
"""Tensors that stay in memory: a stage, what it reads, and the one looked at before."""


class Recording:
    """A trace read from a file; each tensor is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        """Open a recording.

        Raises:
            DamagedRecording: The file is missing, damaged, or no recording.
        """
        self.path = path
        self._read: OrderedDict[tuple[str, int, int], StageTensor] = OrderedDict()
        header = _read_header(path)
        try:
            self.run, self._prediction = _decode(header)
            self.weights_sha256 = str(header["weights_sha256"])
            self._holes = {str(key): str(why) for key, why in header["missing"].items()}
        except (*_UNREADABLE, TuiGPTError) as error:
            raise DamagedRecording(f"{path} is damaged: its header cannot be read") from error

    def tensor(self, stage_id: str, rows: tuple[int, int] | None = None) -> StageTensor:
        """Read the values of one stage; see `Trace.tensor`."""
        stage = find_stage(self.run.stages, stage_id)
        if stage_id in self._holes:
            raise MissingStage(self._holes[stage_id])
        whole = rows is None or stage.name not in ("logits", "probs")
        first, end = (0, stage.shape[0]) if rows is None or whole else rows
        if (stage_id, first, end) in self._read:
            self._read.move_to_end((stage_id, first, end))
            return self._read[stage_id, first, end]
        try:
            with safetensors.safe_open(self.path, framework="numpy") as file:
                read: NDArray[np.generic] = file.get_slice(stage_id)[first:end]
            # Nothing is converted, so a kind of number that we never write is no stage of ours.
            if read.dtype != (np.int64 if stage.name == "tokens" else np.float32):
                raise TypeError(read.dtype)
            tensor = StageTensor(stage, cast(Values, read), first)
        except (safetensors.SafetensorError, OSError, ValueError, TypeError) as error:
            raise DamagedRecording(f"{self.path} is damaged at {stage_id}") from error
        self._read[stage_id, first, end] = tensor
        if len(self._read) > _KEPT:
            self._read.popitem(last=False)
        return tensor

    def prediction(self) -> tuple[Candidate, ...]:
        """List the candidates that were recorded; see `Trace.prediction`."""
        return self._prediction


def save_recording(path: Path, trace: Trace, weights_sha256: str) -> None:
    """Write every stage of a trace to one file, whole or not at all.

    Args:
        path: The file; an existing one is replaced.
        trace: What to keep.
        weights_sha256: Of the weights the numbers came from.

    Raises:
        CannotWrite: The folder is read-only or the disk is full.
    """
    run = trace.run
    tensors: dict[str, Values] = {}
    missing: dict[str, str] = {}
    for stage in run.stages:
        try:
            values = trace.tensor(stage.id).values
            tensors[stage.id] = cast(Values, np.ascontiguousarray(values))
        except MissingStage as hole:
            missing[stage.id] = str(hole)
    header = {
        "schema": SCHEMA,
        "program": f"tui-gpt {__version__}",
        "model": {
            "name": run.model.name,
            "config": run.model.config.to_dict(),
            "parameters": run.model.n_parameters,
        },
        "weights_sha256": weights_sha256,
        "prompt": run.prompt,
        "notices": list(run.notices),
        "tokens": [_encode_token(token) for token in run.tokens],
        "prediction": [
            {
                "token": _encode_token(candidate.token),
                "logit": _encode_number(candidate.logit),
                "prob": _encode_number(candidate.prob),
            }
            for candidate in trace.prediction()
        ],
        "missing": missing,
    }
    metadata = {_KEY: json.dumps(header, allow_nan=False)}
    write_whole(path, safetensors.numpy.save(tensors, metadata=metadata))


def _read_header(path: Path) -> Mapping[str, Any]:
    try:
        if not path.is_file():
            raise DamagedRecording(f"no recording at {path}")
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (safetensors.SafetensorError, OSError) as error:
        raise DamagedRecording(
            f"{path} is damaged or no recording; `tui-gpt trace -o` writes them"
        ) from error
    try:
        header = json.loads(metadata[_KEY])
        schema = header["schema"]
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise DamagedRecording(
            f"{path} is a safetensors file but no recording; `tui-gpt trace -o` writes them"
        ) from error
    if schema != SCHEMA:
        raise DamagedRecording(
            f"{path} has recording schema {schema!r}; this program reads {SCHEMA}"
        )
    assert isinstance(header, dict)
    return header


def _decode(header: Mapping[str, Any]) -> tuple[Run, tuple[Candidate, ...]]:
    config = GPTConfig.from_dict(header["model"]["config"])
    tokens = tuple(_decode_token(raw) for raw in header["tokens"])
    facts = ModelFacts(str(header["model"]["name"]), config, count_parameters(config), "recording")
    run = Run(
        facts,
        str(header["prompt"]),
        tokens,
        tuple(str(notice) for notice in header["notices"]),
        stage_table(config, len(tokens)),
    )
    prediction = tuple(
        Candidate(_decode_token(raw["token"]), float(raw["logit"]), float(raw["prob"]))
        for raw in header["prediction"]
    )
    return run, prediction


def _encode_token(token: Token) -> dict[str, object]:
    encoded: dict[str, object] = {"id": token.id, "bytes": token.bytes.hex()}
    marks = {"unused": token.unused, "added": token.added}
    return encoded | {name: True for name, marked in marks.items() if marked}


def _encode_number(number: float) -> float | str:
    """Keep the JSON strict where a model of broken weights predicts NaN; `float` reads both."""
    return number if math.isfinite(number) else str(number)


def _decode_token(raw: Mapping[str, Any]) -> Token:
    return Token(
        int(raw["id"]),
        bytes.fromhex(raw["bytes"]),
        unused=raw.get("unused") is True,
        added=raw.get("added") is True,
    )
