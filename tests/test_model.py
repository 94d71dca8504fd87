"""The one forward pass, held against independent code and against worked numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from conftest import TINY, TINY_2017, tiny_gpt
from torch import Tensor, nn
from torch.nn import functional

from tui_gpt.config import PRESETS, Activation, GPTConfig, Norm
from tui_gpt.model.gpt import GPT, FeedForward, KeysValues, LayerNorm, sinusoids
from tui_gpt.records.stages import ActivationName, count_parameters, stage_table
from tui_gpt.records.stages import stage_id as stage_id_of
from tui_gpt.trace.record import Recorder

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [10, 0, 7, 7, 8, 2, 0, 1]])
"""(2, 8)"""

FLOAT64 = 1e-12
"""Two orders of the same sums in float64, values up to about 10."""

FLOAT32 = 1e-5
"""Two orders of the same sums in float32, values up to about 10."""


def torchs_own(model: GPT, ids: Tensor) -> Tensor:
    """Compute the logits with torch's TransformerEncoderLayer and the same weights."""
    config = model.config
    weights = model.state_dict()
    n_positions = ids.shape[1]
    table = (
        weights["wpe.weight"]
        if config.positions == "learned"
        else sinusoids(config.block_size, config.n_embd).double()
    )
    x = weights["wte.weight"][ids] + table[:n_positions]
    mask = nn.Transformer.generate_square_subsequent_mask(n_positions, dtype=torch.float64)
    for layer in range(config.n_layer):
        x = torchs_layer(config, weights, layer).forward(x, src_mask=mask, is_causal=True)
    if config.norm == "pre":
        x = functional.layer_norm(
            x,
            (config.n_embd,),
            weights["ln_f.weight"],
            weights.get("ln_f.bias"),
            config.layer_norm_epsilon,
        )
    return functional.linear(x, weights["lm_head.weight"])


def torchs_layer(
    config: GPTConfig, weights: dict[str, Tensor], layer: int
) -> nn.TransformerEncoderLayer:
    activations: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": nn.GELU(approximate="tanh"),
    }
    block = nn.TransformerEncoderLayer(
        config.n_embd,
        config.n_head,
        config.n_inner,
        dropout=0.0,
        activation=activations[config.activation],
        layer_norm_eps=config.layer_norm_epsilon,
        batch_first=True,
        norm_first=config.norm == "pre",
        bias=config.bias,
        dtype=torch.float64,
    )
    ours = {key.removeprefix(f"h.{layer}."): value for key, value in weights.items()}
    state = {
        "self_attn.in_proj_weight": torch.cat([ours[f"attn.{x}.weight"] for x in "qkv"]),
        "self_attn.out_proj.weight": ours["attn.c_proj.weight"],
        "linear1.weight": ours["mlp.c_fc.weight"],
        "linear2.weight": ours["mlp.c_proj.weight"],
        "norm1.weight": ours["ln_1.weight"],
        "norm2.weight": ours["ln_2.weight"],
    }
    if config.bias:
        zero = torch.zeros(config.n_embd, dtype=torch.float64)
        state |= {
            "self_attn.in_proj_bias": torch.cat([ours.get(f"attn.{x}.bias", zero) for x in "qkv"]),
            "self_attn.out_proj.bias": ours["attn.c_proj.bias"],
            "linear1.bias": ours["mlp.c_fc.bias"],
            "linear2.bias": ours["mlp.c_proj.bias"],
            "norm1.bias": ours["ln_1.bias"],
            "norm2.bias": ours["ln_2.bias"],
        }
    block.load_state_dict(state, strict=True)
    return block.requires_grad_(False)


def assert_equals_torchs_own(config: GPTConfig) -> None:
    model = tiny_gpt(config).double()
    torch.testing.assert_close(model(IDS), torchs_own(model, IDS), rtol=0, atol=FLOAT64)


NORMS: tuple[Norm, ...] = ("pre", "post")
ACTIVATIONS: tuple[Activation, ...] = ("relu", "gelu", "gelu_tanh")


@pytest.mark.parametrize(("norm", "activation"), product(NORMS, ACTIVATIONS))
def test_both_orders_and_every_activation_equal_torchs_own_layers(
    norm: Norm, activation: Activation
) -> None:
    assert_equals_torchs_own(replace(TINY, norm=norm, activation=activation))


@pytest.mark.parametrize(("norm", "bias", "qkv_bias"), product(NORMS, (True, False), (True, False)))
def test_biases_are_there_or_not_as_the_config_says(norm: Norm, bias: bool, qkv_bias: bool) -> None:
    config = replace(TINY, norm=norm, bias=bias, qkv_bias=qkv_bias)
    found = {name for name in tiny_gpt(config).state_dict() if name.endswith(".bias")}
    assert bool(found) == bias
    assert any(".attn.q." in name for name in found) == (bias and qkv_bias)
    assert_equals_torchs_own(config)


@pytest.mark.parametrize("n_inner", [1, 24, 32])
def test_the_hidden_width_is_free(n_inner: int) -> None:
    assert_equals_torchs_own(replace(TINY, n_inner=n_inner))


def test_the_model_of_2017_has_sinusoids_for_positions() -> None:
    assert_equals_torchs_own(TINY_2017)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1])
def test_epsilon_comes_from_the_config(epsilon: float) -> None:
    assert_equals_torchs_own(replace(TINY, layer_norm_epsilon=epsilon))


def test_a_tied_head_is_the_token_table() -> None:
    config = replace(TINY, tied=True)
    model = tiny_gpt(config)
    assert model.lm_head.weight is model.wte.weight
    assert_equals_torchs_own(config)


def test_layer_norm_equals_torchs_own() -> None:
    norm = LayerNorm(8, epsilon=1e-5, bias=True)
    torch.nn.init.normal_(norm.weight)
    assert norm.bias is not None
    torch.nn.init.normal_(norm.bias)
    x = 30 + 5 * torch.randn(4, 7, 8, generator=torch.Generator().manual_seed(1))
    torchs = functional.layer_norm(x, (8,), norm.weight, norm.bias, 1e-5)
    torch.testing.assert_close(norm(x), torchs, rtol=0, atol=FLOAT32)


def test_attention_equals_torchs_own(either_norm: GPTConfig) -> None:
    recorder = Recorder()
    tiny_gpt(either_norm)(IDS, recorder)
    for layer in range(either_norm.n_layer):
        q, k, v, z = (recorder.seen[name, layer] for name in ("q", "k", "v", "z"))
        torchs = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.testing.assert_close(z, torchs, rtol=0, atol=FLOAT32)


@pytest.mark.parametrize("width", [2, 8, 64])
def test_sinusoids_are_those_of_the_paper(width: int) -> None:
    table = sinusoids(20, width)
    for position, i in product(range(20), range(width // 2)):
        angle = position / 10000 ** (2 * i / width)
        # float32 rounds a number below 1 by at most 6e-8
        assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=6e-8)
        assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=6e-8)


def test_tapping_changes_nothing(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)
    assert torch.equal(model(IDS), model(IDS, Recorder()))


def test_the_tap_sees_every_stage_of_the_table_once_in_order_and_in_shape(
    either_norm: GPTConfig,
) -> None:
    seen: list[tuple[ActivationName, int | None, tuple[int, ...]]] = []

    def watch(name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
        seen.append((name, layer, tuple(x.shape[1:])))
        return x

    tiny_gpt(either_norm)(IDS[:1], watch)
    table = stage_table(either_norm, IDS.shape[1])
    assert seen == [(stage.name, stage.layer, stage.shape) for stage in table]


@pytest.mark.parametrize("norm", NORMS)
def test_what_a_tap_returns_is_what_the_pass_goes_on_with(norm: Norm) -> None:
    config = replace(TINY, norm=norm)
    model = tiny_gpt(config)
    untouched = model(IDS)
    for stage in stage_table(config, IDS.shape[1]):
        if stage.name in ("tokens", "probs"):  # ids are whole numbers; nothing reads probs
            continue

        def double(
            name: ActivationName,
            layer: int | None,
            x: Tensor,
            at: tuple[ActivationName, int | None] = (stage.name, stage.layer),
        ) -> Tensor:
            return 2 * x if (name, layer) == at else x

        assert not torch.equal(model(IDS, double), untouched), stage.id


@pytest.mark.parametrize("norm", NORMS)
def test_a_stage_is_computed_from_what_the_table_says_it_reads_and_from_nothing_else(
    norm: Norm,
) -> None:
    config = replace(TINY, norm=norm)
    model = tiny_gpt(config)
    recorder = Recorder()
    model(IDS[:1], recorder)
    table = {stage.id: stage for stage in stage_table(config, IDS.shape[1])}
    clean = {stage.id: recorder.seen[stage.name, stage.layer] for stage in table.values()}

    def computed(stage_id: str, held: set[str]) -> Tensor:
        """Compute one stage with the stages in `held` as they were and all others disturbed."""
        found: list[Tensor] = []

        def tap(name: ActivationName, layer: int | None, x: Tensor) -> Tensor:
            at = stage_id_of(name, layer)
            if at == stage_id:
                found.append(x)
            return clean[at] if at in held else disturbed(x)

        model(IDS[:1], tap)
        return found[0]

    for stage in table.values():
        if stage.name == "tokens":
            continue
        reads = set(stage.reads)
        assert torch.equal(computed(stage.id, reads), clean[stage.id]), stage.id
        for source in reads:
            assert not torch.equal(computed(stage.id, reads - {source}), clean[stage.id]), source


def disturbed(x: Tensor) -> Tensor:
    """Change an activation in a way that no LayerNorm and no softmax undoes."""
    if not x.is_floating_point():
        return (x + 1) % TINY.vocab_size
    return x * torch.linspace(0.5, 1.5, x.shape[-1])


@pytest.mark.parametrize("cut", [[5], [3, 2], [1, 1, 1, 1, 1], [1, 4]])
def test_remembered_keys_and_values_give_what_a_full_pass_gives(
    either_norm: GPTConfig, cut: list[int]
) -> None:
    model = tiny_gpt(either_norm)
    ids = IDS[:, :5]
    past: list[KeysValues] = []
    stepped = torch.cat([model(part, past=past) for part in torch.split(ids, cut, dim=1)], dim=1)
    full = model(ids)
    # Case C09: other shapes add up in another order, so equal only to float32 rounding.
    torch.testing.assert_close(stepped, full, rtol=0, atol=1e-4)
    assert torch.equal(stepped.argmax(-1), full.argmax(-1))


def test_layer_norm_of_a_constant_row_is_its_shift() -> None:
    norm = layer_norm(gain=2.0, shift=[0.1, 0.2, 0.3, 0.4])  # case C05
    assert norm(torch.full((4,), 5.0)).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_layer_norm_divides_the_variance_by_n() -> None:
    y = layer_norm()(torch.tensor([1.0, 2.0, 3.0, 4.0]))  # case C06
    assert y.tolist() == pytest.approx([-1.3416, -0.4472, 0.4472, 1.3416], abs=5e-5)


def test_layer_norm_does_not_see_scale_or_shift() -> None:
    x = torch.tensor([2.0, 4.0, 6.0, 8.0])  # W1: mean 5, variance 5
    norm = layer_norm()
    printed = [-1.3416, -0.4472, 0.4472, 1.3416]
    for same in (x, 2 * x, x + 100):
        assert norm(same).tolist() == pytest.approx(printed, abs=5e-5)
    moved = norm(torch.tensor([2.0, 4.0, 6.0, 9.0]))
    assert not torch.allclose(moved, norm(x), atol=1e-2)


def test_layer_norm_of_one_outlier_is_bounded() -> None:
    y = layer_norm()(torch.tensor([1.0, 1.0, 1.0, 50.0]))  # W2: mean 13.25
    assert y.tolist() == pytest.approx([-0.5774, -0.5774, -0.5774, 1.7321], abs=5e-5)


def layer_norm(gain: float = 1.0, shift: list[float] | None = None) -> LayerNorm:
    norm = LayerNorm(4, epsilon=1e-5, bias=True).requires_grad_(False)
    norm.weight.fill_(gain)
    if shift is not None:
        assert norm.bias is not None
        norm.bias.copy_(torch.tensor(shift))
    return norm


def test_gelu_and_relu_are_those_of_the_chapter() -> None:
    x = torch.tensor([-3, -2, -1, -0.5, -0.1, 0, 0.5, 1, 2, 3])  # W5
    printed = [-0.0036, -0.0454, -0.1588, -0.1543, -0.0460, 0, 0.3457, 0.8412, 1.9546, 2.9964]
    gelu = FeedForward(replace(TINY, activation="gelu_tanh"), 0).activation
    relu = FeedForward(replace(TINY, activation="relu"), 0).activation
    assert gelu(x).tolist() == pytest.approx(printed, abs=5e-5)
    assert relu(x).tolist() == [0, 0, 0, 0, 0, 0, 0.5, 1, 2, 3]


def test_the_two_forms_of_gelu_differ_where_the_blog_says() -> None:
    exact = FeedForward(replace(TINY, activation="gelu"), 0).activation
    tanh = FeedForward(replace(TINY, activation="gelu_tanh"), 0).activation
    three = torch.tensor(3.0)  # case A22
    assert exact(three).item() == pytest.approx(2.9960, abs=5e-5)
    assert tanh(three).item() == pytest.approx(2.9964, abs=5e-5)


def test_no_position_sees_a_later_one(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)  # case C08
    changed = IDS[:1, :4].clone()
    changed[0, 3] = 8
    before, after = model(IDS[:1, :4]), model(changed)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3], after[:, 3])

    recorder = Recorder()
    model(IDS[:1, :4], recorder)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    for layer in range(either_norm.n_layer):
        pattern = recorder.seen["pattern", layer]
        assert (pattern[..., future] == 0).all()
        assert (pattern[..., ~future] > 0).all()
        assert (recorder.seen["attn_scores", layer][..., future] == -math.inf).all()
        sums = pattern.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-6)  # 4 addends


def test_one_token_attends_to_itself_alone(either_norm: GPTConfig) -> None:
    recorder = Recorder()  # case C01
    logits = tiny_gpt(either_norm)(IDS[:1, :1], recorder)
    assert recorder.seen["pattern", 0].flatten().tolist() == [1.0, 1.0]
    assert logits.isfinite().all()


def test_no_dropout_is_left_on_while_training(either_norm: GPTConfig) -> None:
    model = tiny_gpt(either_norm)  # case C10
    assert torch.equal(model.train()(IDS), model.eval()(IDS))
    assert torch.equal(model(IDS), model(IDS))


def test_the_parts_of_gpt2_small_are_those_of_the_chapter() -> None:
    counts = {  # K1
        stage.id: stage.n_parameters for stage in stage_table(PRESETS["gpt2-chapter"], 1)
    }
    assert counts["embed"] == 38_597_376
    assert counts["pos_embed"] == 786_432
    parts = {
        "norms": counts["blocks.0.ln_1"] + counts["blocks.0.ln_2"],
        "qkv": sum(counts[f"blocks.0.{name}"] for name in "qkv"),
        "projection": counts["blocks.0.attn_out"],
        "expand": counts["blocks.0.mlp_pre"],
        "contract": counts["blocks.0.mlp_out"],
    }
    assert parts == {
        "norms": 3_072,
        "qkv": 1_771_776,
        "projection": 590_592,
        "expand": 2_362_368,
        "contract": 2_360_064,
    }
    block = sum(n for name, n in counts.items() if name.startswith("blocks.0."))
    blocks = sum(n for name, n in counts.items() if name.startswith("blocks."))
    assert (block, blocks) == (7_087_872, 85_054_464)
    assert counts["ln_final"] == 1_536
    assert counts["logits"] == 38_597_376


@pytest.mark.parametrize(
    ("preset", "printed"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("gpt2-chapter", 163_037_184),
        ("gpt2-book", 163_009_536),
    ],
)
def test_named_shapes_have_the_parameters_that_were_printed(preset: str, printed: int) -> None:
    assert count_parameters(PRESETS[preset]) == printed
    with torch.device("meta"):
        assert built_parameters(PRESETS[preset]) == printed


def test_the_table_counts_what_a_model_of_any_shape_has() -> None:
    draw = random.Random(20)
    for _ in range(40):
        n_head = draw.choice([1, 2, 4])
        config = GPTConfig(
            n_layer=draw.randint(1, 3),
            n_head=n_head,
            n_embd=2 * n_head * draw.randint(1, 4),
            n_inner=draw.randint(1, 40),
            block_size=draw.randint(1, 30),
            vocab_size=draw.randint(1, 50),
            norm=draw.choice(["pre", "post"]),
            positions=draw.choice(["learned", "sinusoidal"]),
            bias=draw.random() < 0.7,
            qkv_bias=draw.random() < 0.5,
            tied=draw.random() < 0.5,
        )
        assert count_parameters(config) == built_parameters(config), config


def built_parameters(config: GPTConfig) -> int:
    return sum(parameter.numel() for parameter in GPT(config).parameters())
