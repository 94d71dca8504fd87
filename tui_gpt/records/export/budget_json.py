"""A budget as JSON: which keys there are, and the text, a line a key or an array's element."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tui_gpt.config import GPTConfig
from tui_gpt.records.budget.counts import StateDictCount, budget, size_names
from tui_gpt.records.budget.memory import all_shapes, memory, shape_rows

SCHEMA = 1


def budget_object(
    name: str, config: GPTConfig, *, batch: int, context: int, found: StateDictCount | None = None
) -> dict[str, object]:
    """Give everything that is known of a shape.

    Args:
        name: What it was started from.
        config: The shape.
        batch: Of the shape table.
        context: Of the shape table and the cache.
        found: What is in the weight file, where there is one.

    Raises:
        ImpossibleShape: The batch or the context does not fit the config.
    """
    counted = budget(config)
    described: dict[str, object] = {
        "schema": SCHEMA,
        "name": name,
        "config": config.to_dict(),
        "expansion": counted.expansion,
        "parts": [
            {
                "name": part.name,
                "shape": part.formula,
                "numbers": part.numbers,
                "each": part.each,
                "times": part.times,
                "count": part.count,
                "share": counted.share(part.count),
                "note": part.note,
            }
            for part in counted.parts
        ],
        "per_block": counted.per_block,
        "blocks": counted.blocks,
        "total": counted.total,
        "counts": {
            "tied": counted.tied,
            "untied": counted.untied,
            "without_positions": counted.without_positions,
            "approx_12LC2": counted.approx_blocks,
            "state_dict": counted.untied,
        },
        "approx_VC": counted.approx_embedding,
        "attention": counted.attention,
        "ffn": counted.ffn,
        "parity_expansion": counted.parity,
        "names": [
            {"name": size.name, "count": size.count, "why": size.why}
            for size in size_names(counted)
        ],
        "bytes": memory(config, batch=batch, context=context).to_dict(),
        "batch": batch,
        "context": context,
        "shapes": [
            {
                "stage": stage,
                "shape": list(shape),
                "elements": elements,
                "bytes": size,
                "broadcast": broadcast,
            }
            for stage, shape, elements, size, broadcast in all_shapes(
                config, shape_rows(config, batch=batch, context=context)
            )
        ],
    }
    if found is not None:
        described["file"] = {
            "tensors": found.n_tensors,
            "parameters": found.n_parameters,
            "stored_twice": dict(found.twice),
            "buffers": dict(found.buffers),
        }
    return described


def budget_text(document: Mapping[str, object]) -> Iterator[str]:
    """Write a budget's object in pieces."""
    before = "{\n"
    for key, value in document.items():
        yield f"{before}{json.dumps(key)}: "
        before = ",\n"
        if isinstance(value, list) and key in ("parts", "shapes", "names"):
            elements = ",\n".join(json.dumps(element, allow_nan=False) for element in value)
            yield f"[\n{elements}\n]"
        elif key == "other" and isinstance(value, dict):
            yield from budget_text(value)
        else:
            yield json.dumps(value, allow_nan=False)
    yield "\n}"
