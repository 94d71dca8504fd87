"""Counts and bytes of a shape: equal to the built model, to the texts, and to the unit."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY, TINY_2017, tiny_gpt

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.parameter_count import count_state_dict
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import ImpossibleShape
from tui_gpt.files import BUNDLED_MODELS
from tui_gpt.model.gpt import GPT
from tui_gpt.records.budget import memory as memory_module
from tui_gpt.records.budget.counts import (
    Budget,
    budget,
    inner_width,
    rounded,
    size_names,
    state_dict,
)
from tui_gpt.records.budget.memory import all_shapes, largest, memory, shape_rows
from tui_gpt.records.export.budget_json import budget_object, budget_text
from tui_gpt.records.stages import count_parameters, stage_table
from tui_gpt.trace import record

GPT2, XL = PRESETS["gpt2"], PRESETS["gpt2-xl"]
CHAPTER, BOOK = PRESETS["gpt2-chapter"], PRESETS["gpt2-book"]


def each(found: Budget) -> dict[str, int]:
    return {part.name: part.each for part in found.parts}


def built(config: GPTConfig) -> int:
    """Count the parameters of the real model, which needs no memory on the meta device."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in GPT(config).parameters())


def a_shape(seed: int) -> GPTConfig:
    draw = random.Random(seed)
    heads = draw.randint(1, 6)
    return GPTConfig(
        n_layer=draw.randint(1, 5),
        n_head=heads,
        n_embd=2 * heads * draw.randint(1, 9),
        n_inner=draw.randint(1, 99),
        block_size=draw.randint(1, 40),
        vocab_size=draw.randint(1, 200),
        norm=draw.choice(("pre", "post")),
        positions=draw.choice(("learned", "sinusoidal")),
        bias=draw.random() < 0.7,
        qkv_bias=draw.random() < 0.5,
        tied=draw.random() < 0.5,
    )


def test_k1_every_part_of_the_chapters_model() -> None:
    found = budget(CHAPTER)
    assert each(found) == {
        "token embedding": 38_597_376,
        "positions": 786_432,
        "norms": 3_072,
        "q k v": 1_771_776,
        "attention out": 590_592,
        "FFN expand": 2_362_368,
        "FFN contract": 2_360_064,
        "final norm": 1_536,
        "head": 38_597_376,
    }
    assert (found.per_block, found.blocks) == (7_087_872, 85_054_464)
    assert (found.total, found.untied, found.tied) == (163_037_184, 163_037_184, 124_439_808)


def test_k2_the_book_leaves_the_biases_of_q_k_v_out() -> None:
    found = budget(BOOK)
    assert (found.per_block, found.blocks) == (7_085_568, 85_026_816)
    assert (found.total, found.tied) == (163_009_536, 124_412_160)
    assert budget(CHAPTER).total - found.total == budget(CHAPTER).qkv_biases == 27_648
    assert found.qkv_biases == 0
    assert round(100 * found.share(found.embedding_shaped), 1) == 47.4
    assert round(100 * found.share(found.blocks), 1) == 52.2


def test_k3_the_head_weighs_less_in_a_large_model() -> None:
    large = budget(replace(XL, tied=False, qkv_bias=False))
    assert (large.total, large.tied) == (1_637_792_000, 1_557_380_800)
    assert round(100 * large.share(large.head), 1) == 4.9
    assert round(100 * budget(BOOK).share(budget(BOOK).head), 1) == 23.7


def test_k4_bytes_in_both_units() -> None:
    assert memory(GPT2, batch=1, context=1).weights["float32"] == 497_759_232
    assert memory(CHAPTER, batch=1, context=1).weights["float32"] == 652_148_736
    assert memory(BOOK, batch=1, context=1).weights["float32"] == 652_038_144


def test_k5_and_c21_the_formula_is_near_and_not_exact() -> None:
    found = budget(GPT2)
    assert (found.approx_blocks, found.approx_embedding) == (84_934_656, 38_597_376)
    assert (found.blocks, found["final norm"].each) == (85_054_464, 1_536)
    assert rounded(found.approx_blocks + found.approx_embedding) == "124M"


def test_k6_the_ffn_is_two_thirds_of_a_block_and_the_embedding_a_third_of_the_model() -> None:
    found = budget(GPT2)
    assert round(100 * found.share(found["token embedding"].count)) == 31
    assert found.ffn / found.per_block == pytest.approx(2 / 3, abs=0.001)


def test_k7_attention_and_ffn_are_level_near_an_expansion_of_two() -> None:
    book = budget(BOOK)
    assert (book.ffn, book.attention) == (4_722_432, 2_360_064)
    assert round(100 * book.ffn / book.per_block, 1) == 66.6
    assert budget(CHAPTER).attention == 2_362_368
    half = budget(replace(BOOK, n_inner=inner_width(2, 768)))
    assert half.ffn - half.attention == 1_536
    assert f"{book.parity:.4f}" == f"{half.parity:.4f}" == "1.9987"


@pytest.mark.parametrize(
    ("name", "paper", "now", "tied", "untied", "heads"),
    [
        ("gpt2", "117M", "124M", 124_439_808, 163_037_184, (768, 12)),
        ("gpt2-medium", "345M", "355M", 354_823_168, 406_286_336, (1024, 16)),
        ("gpt2-large", "762M", "774M", 774_030_080, 838_359_040, (1280, 20)),
        ("gpt2-xl", "1542M", "1558M", 1_557_611_200, 1_638_022_400, (1600, 25)),
    ],
)
def test_k8_and_c19_names_and_counts_of_the_four_sizes(
    name: str, paper: str, now: str, tied: int, untied: int, heads: tuple[int, int]
) -> None:
    config = PRESETS[name]
    found = budget(config)
    assert (config.n_embd, config.n_head, config.head_dim) == (*heads, 64)
    assert (found.total, found.tied, found.untied) == (tied, tied, untied)
    assert budget(replace(config, tied=False)).total == untied
    names = size_names(found)
    assert [(size.name, size.count) for size in names[:2]] == [(paper, None), (now, tied)]
    assert names[2].count == untied
    assert [size.current for size in names] == [False, True, False]


def test_a_shape_of_ones_own_has_no_name_in_the_paper() -> None:
    names = size_names(budget(TINY))
    assert [size.count for size in names] == [budget(TINY).tied, budget(TINY).untied]
    assert rounded(999) == "999"
    assert rounded(114_560) == "115k"
    assert rounded(999_600) == "1M"
    assert rounded(20_000_000_000) == "20B"


def test_k9_shapes_from_ids_to_logits() -> None:
    rows = shape_rows(GPT2, batch=2, context=4)
    listed = list(all_shapes(GPT2, rows))
    shapes = {stage: shape for stage, shape, *_ in listed}
    assert shapes["tokens"] == (2, 4)
    assert shapes["embed"] == (2, 4, 768)
    assert shapes["pos_embed"] == (4, 768)
    assert [stage for stage, *_, broadcast in listed if broadcast] == ["pos_embed"]
    blocks = [shape for stage, shape in shapes.items() if stage.endswith(".resid_post")]
    assert blocks == [(2, 4, 768)] * 12
    assert shapes["logits"] == (2, 4, 50257)
    top, times = largest(shape_rows(GPT2, batch=8, context=1024))
    assert (top.names, top.bytes) == (("logits", "probs"), 1_646_821_376)
    assert round(times, 1) == 4.1


@pytest.mark.parametrize("name", BUNDLED_MODELS)
def test_a_bundled_model_has_the_counted_parameters(name: str) -> None:
    source = find_model(name)
    count = budget(source.config).total
    assert count == sum(parameter.numel() for parameter in load_weights(source).parameters())
    found = count_state_dict(source)
    assert found is not None
    assert (found.n_parameters, found.twice, found.buffers) == (count, (), ())


@pytest.mark.parametrize("seed", range(50))
def test_fifty_random_shapes_have_the_parameters_of_the_built_model(seed: int) -> None:
    config = a_shape(seed)
    found = budget(config)
    assert found.total == built(config) == count_parameters(config)
    assert found.tied == built(replace(config, tied=True))
    assert found.untied == built(replace(config, tied=False))
    state = GPT(config).state_dict()
    assert found.untied == sum(tensor.numel() for tensor in state.values())
    assert found.total == found.blocks + sum(p.count for p in found.parts if not p.in_block)
    ffn = found.parity * config.n_embd * (2 * config.n_embd + config.bias)
    assert ffn + config.bias * config.n_embd == pytest.approx(found.attention)


@pytest.mark.parametrize("config", [GPT2, BOOK, replace(GPT2, bias=False), TINY_2017])
def test_the_formula_of_a_part_gives_its_count(config: GPTConfig) -> None:
    letters = {"C": config.n_embd, "F": config.n_inner, "V": config.vocab_size}
    letters["block_size"] = config.block_size
    for part in budget(config).parts:
        if not part.note:
            assert eval(part.numbers.replace("×", "*")) == part.each
            assert eval(part.formula.replace("·", "*"), {}, letters) == part.each
        else:
            assert part.each == 0


def test_the_shape_table_is_the_stage_table() -> None:
    for config in (TINY, TINY_2017):
        rows = shape_rows(config, batch=3, context=5)
        listed = list(all_shapes(config, rows))
        stages = stage_table(config, 5)
        assert [stage for stage, *_ in listed] == [stage.id for stage in stages]
        for stage, (_, shape, elements, n_bytes, broadcast) in zip(stages, listed, strict=True):
            assert shape == (stage.shape if broadcast else (3, *stage.shape))
            assert elements == np.prod(shape)
            assert n_bytes == elements * (8 if stage.name == "tokens" else 4)
        assert memory(config, batch=3, context=5).full_capture == sum(row[3] for row in listed)


def test_a_pass_gives_the_shapes_of_the_table() -> None:
    seen: dict[str, tuple[int, ...]] = {}

    def tap(name: str, layer: int | None, x: torch.Tensor) -> torch.Tensor:
        seen[name if layer is None else f"blocks.{layer}.{name}"] = tuple(x.shape)
        return x

    tiny_gpt(TINY)(torch.zeros(3, 5, dtype=torch.long), tap)
    for stage, shape, *_ in all_shapes(TINY, shape_rows(TINY, batch=3, context=5)):
        assert seen[stage] == ((1, *shape) if stage == "pos_embed" else shape)


def test_what_the_trace_keeps_is_what_the_budget_says_it_keeps() -> None:
    assert memory_module.BLOCKS_KEPT == record.BLOCKS_KEPT
    assert memory_module.ROWS_TOGETHER == record.ROWS_TOGETHER
    found = memory(XL, batch=1, context=1024)
    assert found.patterns / 2**30 == pytest.approx(4.69, abs=0.005)  # case E07
    assert memory(GPT2, batch=1, context=1024).patterns / 2**20 == 576
    assert found.on_demand < found.full_capture / 10


def test_training_takes_sixteen_bytes_a_parameter_and_the_cache_two_vectors_a_token() -> None:
    found = memory(GPT2, batch=2, context=100)
    assert found.training == 16 * 124_439_808
    assert found.kv_numbers == 2 * 12 * 2 * 100 * 768
    assert found.to_dict()["kv_cache_float16"] == 2 * found.kv_numbers


@pytest.mark.parametrize(
    ("batch", "context", "words"),
    [
        (0, 4, "batch is 0; it must be from 1"),
        (2**31, 4, "batch is 2147483648; it must be from 1 to 2,147,483,647"),
        (1, 0, "context is 0; it must be from 1 to 1,024"),
        (1, 1025, "context 1025 is longer than block_size 1024"),
    ],
)
def test_an_impossible_batch_or_context_is_refused_with_both_numbers(
    batch: int, context: int, words: str
) -> None:
    with pytest.raises(ImpossibleShape, match=words):
        memory(GPT2, batch=batch, context=context)


def test_hidden_units_are_the_rounded_expansion() -> None:
    assert inner_width(4, 768) == 3072
    assert inner_width(1.9987, 768) == 1535
    for expansion in (float("nan"), float("inf"), 0, -1):
        with pytest.raises(ImpossibleShape, match="expansion"):
            inner_width(expansion, 768)


def test_a_file_with_a_head_stored_twice_and_a_buffer_is_explained() -> None:
    tied = replace(TINY, tied=True)
    shapes = {key: tuple(x.shape) for key, x in tiny_gpt(tied).state_dict().items()}
    found = state_dict(tied, {**shapes, "h.0.attn.mask": (16, 16)})
    assert found.n_parameters == budget(tied).total
    assert found.twice == (("lm_head.weight", 88),)
    assert found.buffers == (("h.0.attn.mask", 256),)


def test_the_json_is_strict_and_adds_up() -> None:
    document = budget_object("gpt2", GPT2, batch=1, context=1024)
    document["other"] = budget_object("book", BOOK, batch=1, context=1024)
    read: Mapping[str, Any] = json.loads("".join(budget_text(document)))
    assert read == document
    assert sum(part["count"] for part in read["parts"]) == read["total"] == 124_439_808
    assert sum(part["share"] for part in read["parts"]) == pytest.approx(1)
    assert read["counts"] == {
        "tied": 124439808,
        "untied": 163037184,
        "without_positions": 123653376,
        "approx_12LC2": 84934656,
        "state_dict": 163037184,
    }


def test_the_largest_shape_there_is_can_still_be_counted() -> None:
    most = 2**31 - 1
    config = GPTConfig(
        n_layer=10_000, n_head=1, n_embd=most, n_inner=most, block_size=most, vocab_size=most
    )
    assert budget(config).total == count_parameters(replace(config, n_layer=1)) + (
        9_999 * budget(config).per_block
    )
