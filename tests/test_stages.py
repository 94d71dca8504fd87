"""The stage table: known from the config and T alone, before anything is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import TINY, TINY_2017

from tui_gpt.config import PRESETS, GPTConfig
from tui_gpt.errors import ImpossibleShape, UnknownStage
from tui_gpt.records.stages import count_parameters, find_stage, stage_table

PRE_BLOCK = [
    "resid_pre", "ln_1", "q", "k", "v", "attn_scores", "pattern", "z", "attn_out", "resid_mid",
    "ln_2", "mlp_pre", "mlp_post", "mlp_out", "resid_post",
]  # fmt: skip
POST_BLOCK = [
    "resid_pre", "q", "k", "v", "attn_scores", "pattern", "z", "attn_out", "resid_mid", "ln_1",
    "mlp_pre", "mlp_post", "mlp_out", "resid_post", "ln_2",
]  # fmt: skip


def test_two_pre_norm_blocks_have_thirty_six_stages_in_this_order() -> None:
    ids = [stage.id for stage in stage_table(TINY, 5)]
    blocks = [f"blocks.{i}.{name}" for i in (0, 1) for name in PRE_BLOCK]
    assert ids == ["tokens", "embed", "pos_embed", *blocks, "ln_final", "logits", "probs"]
    assert len(ids) == 36


def test_two_post_norm_blocks_have_thirty_five_and_no_final_norm() -> None:
    ids = [stage.id for stage in stage_table(TINY_2017, 5)]
    blocks = [f"blocks.{i}.{name}" for i in (0, 1) for name in POST_BLOCK]
    assert ids == ["tokens", "embed", "pos_embed", *blocks, "logits", "probs"]
    assert len(ids) == 35


def test_a_stage_reads_only_stages_before_it(either_norm: GPTConfig) -> None:
    earlier: set[str] = set()
    for stage in stage_table(either_norm, 5):
        assert set(stage.reads) <= earlier, stage.id
        earlier.add(stage.id)


def test_every_stage_but_the_last_is_read_by_another(either_norm: GPTConfig) -> None:
    table = stage_table(either_norm, 5)
    read = {source for stage in table for source in stage.reads}
    assert {stage.id for stage in table} - read == {"probs"}


def test_the_second_block_reads_what_the_first_one_leaves() -> None:
    assert find_stage(stage_table(TINY, 5), "blocks.1.resid_pre").reads == ("blocks.0.resid_post",)
    post = stage_table(TINY_2017, 5)
    assert find_stage(post, "blocks.1.resid_pre").reads == ("blocks.0.ln_2",)
    assert find_stage(post, "logits").reads == ("blocks.1.ln_2",)


def test_the_stream_is_added_to_from_where_it_branched_off() -> None:
    pre, post = stage_table(TINY, 5), stage_table(TINY_2017, 5)
    for table in (pre, post):
        resid_mid = find_stage(table, "blocks.0.resid_mid")
        assert resid_mid.reads == ("blocks.0.resid_pre", "blocks.0.attn_out")
    assert find_stage(pre, "blocks.0.resid_post").reads == (
        "blocks.0.resid_mid",
        "blocks.0.mlp_out",
    )
    assert find_stage(post, "blocks.0.resid_post").reads == ("blocks.0.ln_1", "blocks.0.mlp_out")


def test_shapes_follow_from_the_config_and_the_prompt() -> None:
    config = replace(TINY, n_inner=24)
    shapes = {stage.id: (stage.shape, "".join(stage.axes)) for stage in stage_table(config, 5)}
    assert shapes["tokens"] == ((5,), "T")
    assert shapes["embed"] == ((5, 8), "TC")
    assert shapes["blocks.1.q"] == ((2, 5, 4), "HTD")
    assert shapes["blocks.1.pattern"] == ((2, 5, 5), "HTqTk")
    assert shapes["blocks.1.mlp_post"] == ((5, 24), "TF")
    assert shapes["logits"] == ((5, 11), "TV")


def test_every_stage_says_what_it_is_for_and_where_it_is_taught(either_norm: GPTConfig) -> None:
    for stage in stage_table(either_norm, 5):
        assert stage.purpose, stage.id
        assert "Module" in stage.section, stage.id
        assert stage.topic == f"{stage.purpose} ({stage.section})"
        assert "\n" not in stage.topic
        assert stage.operation, stage.id
        assert stage.formula, stage.id


def test_a_formula_names_no_bias_that_is_not_there() -> None:
    def formulas(config: GPTConfig) -> dict[str, str]:
        return {stage.id: stage.formula for stage in stage_table(config, 5)}

    assert formulas(TINY)["blocks.0.q"] == "ln_1 · W_Q + b"
    assert formulas(replace(TINY, qkv_bias=False))["blocks.0.q"] == "ln_1 · W_Q"
    bare = formulas(replace(TINY, bias=False))
    assert bare["blocks.0.mlp_out"] == "mlp_post · W_2"
    assert "β" not in bare["blocks.0.ln_1"]
    assert "β" in formulas(TINY)["blocks.0.ln_1"]


def test_a_tied_head_is_listed_as_shared_and_counted_at_the_token_table() -> None:
    tied = {stage.id: stage for stage in stage_table(replace(TINY, tied=True), 5)}
    assert tied["embed"].n_parameters == 11 * 8
    assert tied["logits"].n_parameters == 0
    (head,) = tied["logits"].parameters
    assert (head.name, head.shape, head.count, head.shared) == ("wte.weight", (11, 8), 88, True)
    assert count_parameters(replace(TINY, tied=True)) == 1_976  # case A01
    assert count_parameters(TINY) == 2_064  # case A06
    assert count_parameters(replace(TINY, tied=True, n_inner=24)) == 1_704  # case A21


def test_sinusoids_are_no_parameters() -> None:
    assert find_stage(stage_table(TINY_2017, 5), "pos_embed").parameters == ()
    (table,) = find_stage(stage_table(TINY, 5), "pos_embed").parameters
    assert table.shape == (TINY.block_size, TINY.n_embd)  # W8: what a learned table costs


def test_an_unknown_stage_is_answered_with_those_there_are() -> None:
    with pytest.raises(UnknownStage) as refused:
        find_stage(stage_table(TINY, 5), "blocks.2.pattern")
    said = str(refused.value)
    assert "'blocks.2.pattern'" in said
    assert "tokens, embed, pos_embed, ln_final, logits, probs" in said
    assert "i from 0 to 1" in said
    assert "attn_scores, pattern" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_embd": 9}, "n_embd 9 does not divide into n_head 2; take a multiple of 2"),
        ({"n_layer": 0}, "n_layer is 0; it must be from 1 to 10,000"),
        ({"vocab_size": 2**31}, "vocab_size is 2147483648; it must be from 1 to 2,147,483,647"),
        ({"n_head": True}, "n_head is True; it must be a whole number"),
        ({"n_inner": 3.5}, "n_inner is 3.5; it must be a whole number"),
        ({"norm": "middle"}, "norm is 'middle'; it must be one of pre, post"),
        ({"activation": "swoosh"}, "activation is 'swoosh'; it must be one of gelu, gelu_tanh"),
        ({"tied": "yes"}, "tied is 'yes'; it is true or false"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is nan; it must be from 0 to 1"),
        ({"n_embd": 3, "n_head": 3, "positions": "sinusoidal"}, "n_embd 3 is odd; sinusoidal"),
    ],
)
def test_a_shape_that_no_model_can_have_is_refused_with_its_numbers(
    changes: dict[str, object], said: str
) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        GPTConfig.from_dict({**TINY.to_dict(), **changes})
    assert said in str(refused.value)


def test_a_missing_inner_width_is_four_times_the_width() -> None:
    raw = TINY.to_dict()
    assert GPTConfig.from_dict({**raw, "n_inner": None}).n_inner == 32  # case A21
    del raw["n_inner"]
    assert GPTConfig.from_dict(raw).n_inner == 32
    assert GPTConfig.from_dict({**raw, "n_inner": 24}).n_inner == 24


def test_a_missing_size_is_named_and_never_guessed() -> None:
    raw = TINY.to_dict()  # case A27
    del raw["n_embd"]
    with pytest.raises(ImpossibleShape, match="the config has no n_embd"):
        GPTConfig.from_dict(raw)


def test_a_config_survives_json_and_no_bias_means_no_qkv_bias() -> None:
    for config in (TINY, TINY_2017, *PRESETS.values()):
        assert GPTConfig.from_dict(config.to_dict()) == config
    assert not replace(TINY, bias=False, qkv_bias=True).qkv_bias
