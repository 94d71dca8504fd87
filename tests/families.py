"""Tiny random models of every family, ours and the same in transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tui_gpt.config import GPTConfig, RopeScaling
from tui_gpt.model.gpt import GPT

SHAPE = dict(n_layer=3, n_head=4, n_embd=32, n_inner=48, block_size=128, vocab_size=61)
LLAMA = dict(
    positions="rotary", activation="silu", bias=False, qkv_bias=False, norm_type="rmsnorm",
    gated=True, layer_norm_epsilon=1e-6, **SHAPE,
)  # fmt: skip
SCALING = RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original=32)


@dataclass(frozen=True)
class Family:
    """A config of ours and what transformers calls the same model."""

    config: GPTConfig
    reference: str
    options: Mapping[str, Any]


def llama_like(reference: str, options: Mapping[str, Any], **ours: Any) -> Family:
    return Family(GPTConfig(**{**LLAMA, **ours}), reference, options)


def pythia(options: Mapping[str, Any], **ours: Any) -> Family:
    config = GPTConfig(
        **{**SHAPE, **dict(positions="rotary", activation="gelu", rotary_fraction=0.25), **ours}
    )
    return Family(config, "GPTNeoX", options)


FAMILIES = {
    "llama": llama_like("Llama", {}),
    "grouped": llama_like("Llama", {"num_key_value_heads": 2}, n_kv_head=2),
    "one key head, tied": llama_like(
        "Llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}, n_kv_head=1, tied=True
    ),
    "theta": llama_like("Llama", {"rope_theta": 500000.0}, rope_theta=500000.0),
    "llama3 scaling": llama_like(
        "Llama",
        {
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            }
        },
        rope_scaling=SCALING,
    ),
    "own head width": llama_like("Llama", {"head_dim": 12}, own_head_dim=12),
    "every bias": llama_like(
        "Llama", {"attention_bias": True, "mlp_bias": True}, bias=True, qkv_bias=True
    ),
    "window": llama_like(
        "Mistral", {"sliding_window": 7, "num_key_value_heads": 2}, window=7, n_kv_head=2
    ),
    "qwen2": llama_like("Qwen2", {"num_key_value_heads": 2}, n_kv_head=2, qkv_bias=True),
    "qwen3": llama_like(
        "Qwen3", {"num_key_value_heads": 2, "head_dim": 16}, n_kv_head=2, own_head_dim=16,
        qk_norm=True,
    ),
    "pythia": pythia({}, parallel=True),
    "pythia, all features": pythia({"rotary_pct": 1.0}, parallel=True, rotary_fraction=1.0),
    "pythia in series": pythia({"use_parallel_residual": False}),
}  # fmt: skip


def reference_of(family: Family) -> Any:
    """Build the same shape in transformers, every parameter random, norms around 1."""
    import transformers

    config = getattr(transformers, f"{family.reference}Config")(
        num_hidden_layers=3, num_attention_heads=4, hidden_size=32, intermediate_size=48,
        max_position_embeddings=128, vocab_size=61,
        **{"rms_norm_eps": 1e-6, "tie_word_embeddings": False, "num_key_value_heads": 4}
        | ({"rotary_pct": 0.25} if family.reference == "GPTNeoX" else {})
        | dict(family.options),
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family.reference}ForCausalLM")(config).eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = "norm" in name and name.endswith("weight")
            parameter.copy_(1 + 0.3 * noise if is_norm else 0.15 * noise)
    return model


RENAMED = {
    "model.embed_tokens": "wte", "model.norm": "ln_f", "lm_head": "lm_head",
    "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2",
    "self_attn.q_proj": "attn.q", "self_attn.k_proj": "attn.k", "self_attn.v_proj": "attn.v",
    "self_attn.o_proj": "attn.c_proj", "self_attn.q_norm": "attn.q_norm",
    "self_attn.k_norm": "attn.k_norm", "mlp.gate_proj": "mlp.c_fc", "mlp.up_proj": "mlp.c_up",
    "mlp.down_proj": "mlp.c_proj", "model.layers": "h",
    "gpt_neox.embed_in": "wte", "gpt_neox.final_layer_norm": "ln_f", "embed_out": "lm_head",
    "gpt_neox.layers": "h", "attention.dense": "attn.c_proj", "mlp.dense_h_to_4h": "mlp.c_fc",
    "mlp.dense_4h_to_h": "mlp.c_proj",
}  # fmt: skip


def ours_of(family: Family, reference: Any) -> GPT:
    """Copy the reference's parameters under our names."""
    state: dict[str, Tensor] = {}
    n_head = family.config.n_head
    for key, tensor in reference.state_dict().items():
        for theirs, name in RENAMED.items():
            key = key.replace(theirs, name)
        if "query_key_value" in key:
            parts = tensor.reshape(n_head, 3, -1, *tensor.shape[1:]).transpose(0, 1).flatten(1, 2)
            for letter, part in zip("qkv", parts, strict=True):
                state[key.replace("attention.query_key_value", f"attn.{letter}")] = part
        elif "rotary_emb" not in key and "masked_bias" not in key and key[-14:] != "attention.bias":
            state[key] = tensor
    model = GPT(family.config)
    model.load_state_dict(state, strict=True)
    return model.eval()
