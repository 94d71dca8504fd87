"""A trace as JSON: which keys there are, and the text, piece by piece.

Strict JSON in ASCII: what is masked, missing or not finite is null. Long arrays are iterators
over their elements, so that a tensor need not be in memory as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tui_gpt.records.analyses.explanation import CellRef, Explanation
from tui_gpt.records.analyses.generation import GenerationStep
from tui_gpt.records.float_format import shortest_float, shortest_floats
from tui_gpt.records.stages import Parameter
from tui_gpt.records.tensors import StageSummary, StageTensor, Values
from tui_gpt.records.tokens import Token
from tui_gpt.records.trace import Candidate, ModelFacts, Run

SCHEMA = 1


def trace_object(
    run: Run, summaries: Iterable[StageSummary], prediction: Iterable[Candidate]
) -> dict[str, object]:
    """Give what every trace says, whichever values are asked for besides."""
    return {
        "schema": SCHEMA,
        "model": model_object(run.model),
        "prompt": run.prompt,
        "tokens": [
            {"position": position, **token_object(token)}
            for position, token in enumerate(run.tokens)
        ],
        "notices": list(run.notices),
        "stages": [stage_object(summary) for summary in summaries],
        "prediction": [
            {
                **token_object(candidate.token),
                "logit": _number(candidate.logit),
                "prob": _number(candidate.prob),
            }
            for candidate in prediction
        ],
    }


def model_object(model: ModelFacts) -> dict[str, object]:
    """Say which model it is."""
    return {
        "name": model.name,
        "config": model.config.to_dict(),
        "parameters": model.n_parameters,
        "source": model.source,
    }


def token_object(token: Token) -> dict[str, object]:
    """Give a token's id, its exact text or null, and its bytes in hex."""
    told: dict[str, object] = {"id": token.id, "text": token.text, "bytes": token.bytes.hex()}
    return told | {"added": True} if token.added else told


def stage_object(summary: StageSummary) -> dict[str, object]:
    """Describe a stage, with null for each statistic that there is not."""
    stage, found = summary.stage, summary.statistics
    described: dict[str, object] = {
        "id": stage.id,
        "layer": stage.layer,
        "shape": list(stage.shape),
        "axes": list(stage.axes),
        "operation": stage.operation,
        "formula": stage.formula,
        "topic": stage.topic,
        "reads": list(stage.reads),
        "parameters": [_parameter_object(parameter) for parameter in stage.parameters],
        "min": _number(found.minimum) if found else None,
        "max": _number(found.maximum) if found else None,
        "mean": _number(found.mean) if found else None,
        "std": _number(found.std) if found else None,
        "masked": found.masked if found else None,
        "not_finite": found.not_finite if found else None,
    }
    if summary.missing is not None:
        described["missing"] = summary.missing
    return described


def stage_rows(slices: Iterable[StageTensor]) -> Iterator[object]:
    """Give a stage's values as nested lists, one element of its first axis after the other."""
    for tensor in slices:
        masked = tensor.masked
        for i, row in enumerate(tensor.values):
            yield _nested(row, None if masked is None else masked[i])


def parameter_object(
    name: str, shape: Sequence[int], values: NDArray[np.float32]
) -> dict[str, object]:
    """Give one parameter with its values."""
    rows = (_nested(row, None) for row in values) if values.ndim > 1 else _nested(values, None)
    return {"name": name, "shape": list(shape), "values": rows}


def explanation_object(explanation: Explanation) -> dict[str, object]:
    """Say where one number comes from; terms, remainder and bias only where products are summed."""
    value, wide = explanation.value, explanation.value_float64
    reason = explanation.reason
    if reason is None and value is not None and not np.isfinite(value):
        reason = f"the value is {value}, which is no number in JSON"
    described: dict[str, object] = {
        "stage": explanation.stage,
        "index": list(explanation.index),
        "value": _number(value),
        "value_float64": wide if wide is not None and np.isfinite(wide) else None,
        "formula": explanation.formula,
        "operands": [
            {
                "role": operand.role,
                **(_cell(operand.cell) if operand.cell else _NOWHERE),
                "value": _number(operand.value),
            }
            for operand in explanation.operands
        ],
    }
    if explanation.has_terms:
        described["terms"] = [
            {
                "label": term.label,
                "input": _number(term.input),
                "weight": _number(term.weight),
                "product": _number(term.product),
                "input_cell": _cell(term.input_cell),
                "weight_cell": _cell(term.weight_cell),
            }
            for term in explanation.terms
        ]
        described["remainder"] = _number(explanation.remainder)
        described["bias"] = _number(explanation.bias)
        described["n_terms"] = explanation.n_terms
    described["reason"] = reason
    return described


def generation_object(step: GenerationStep, top: int) -> dict[str, object]:
    """Describe one step of generation, with this many of its candidates."""
    described: dict[str, object] = {
        "schema": SCHEMA,
        "step": step.step,
        **token_object(step.token),
        "logit": _number(step.chosen.logit),
        "prob": _number(step.chosen.prob),
        "argmax_logits": step.argmax_logits,
        "argmax_probs": step.argmax_probs,
        "entropy": _number(step.ranking.entropy),
        "margin": _number(step.ranking.margin),
        "window": list(step.window),
        "cropped": step.cropped,
        "cached": step.cached,
        "sampled": step.chosen_by == "sampled",
        "candidates": [
            {
                **token_object(one.token),
                "logit": _number(one.logit),
                "prob": _number(one.prob),
            }
            for one in step.ranking.best[:top]
        ],
    }
    if step.reshaped is not None:
        sampling = step.reshaped.sampling
        described["sampling"] = {
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "prob": step.reshaped.drawn_prob,
            "kept": step.reshaped.n_kept,
        }
    return described


def json_text(document: Mapping[str, object]) -> Iterator[str]:
    """Write one object in pieces, a line a key and a line an element of its arrays of objects.

    Args:
        document: Its values are JSON-able, or iterators over the elements of an array.

    Raises:
        ValueError: A number is not finite.
    """
    yield from _object(document)
    yield "\n"


def _object(document: Mapping[str, object]) -> Iterator[str]:
    before = "{\n"
    for key, value in document.items():
        yield f"{before}{_dumps(key)}: "
        before = ",\n"
        if isinstance(value, Iterator) or _holds_objects(value):
            yield from _array(value)  # type: ignore[arg-type]  # either can be iterated over
        elif isinstance(value, dict) and any(isinstance(x, Iterator) for x in value.values()):
            yield from _object(value)
        else:
            yield _dumps(value)
    yield "\n}"


def _array(elements: Iterable[object]) -> Iterator[str]:
    before = "[\n"
    for element in elements:
        yield f"{before}{_dumps(element)}"
        before = ",\n"
    yield "\n]" if before == ",\n" else "[]"


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _dumps(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _parameter_object(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "shape": list(parameter.shape),
        "count": parameter.count,
        "shared": parameter.shared,
    }


_NOWHERE: dict[str, object] = {"stage": None, "parameter": None, "index": None}


def _cell(cell: CellRef) -> dict[str, object]:
    return {"stage": cell.stage, "parameter": cell.parameter, "index": list(cell.index)}


def _number(value: float | None) -> float | None:
    """Shorten a float32; a whole number, such as an id, stays one, and what is not finite goes."""
    if isinstance(value, int):
        return value
    if value is None:
        return None
    with np.errstate(over="ignore"):  # a product may be too large for a float32
        single = np.float32(value)
    return shortest_float(float(single)) if np.isfinite(single) else None


def _nested(values: Values, masked: NDArray[np.bool_] | None) -> object:
    """Turn an array into lists; a single number where nothing is left of its axes."""
    if values.ndim > 1:
        holes = [None] * len(values) if masked is None else masked
        return [_nested(row, hole) for row, hole in zip(values, holes, strict=True)]
    if np.issubdtype(values.dtype, np.integer):
        return values.tolist()
    row = values.astype(np.float32, copy=False)
    if row.ndim == 0:
        return _number(float(row))
    present = np.isfinite(row) if masked is None else np.isfinite(row) & ~masked
    if present.all():
        return shortest_floats(row)
    pairs = zip(shortest_floats(row), present.tolist(), strict=True)
    return [number if there else None for number, there in pairs]
