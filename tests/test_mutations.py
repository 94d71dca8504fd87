"""A good checkpoint, changed: what is still sound opens as what it now is, the rest is refused.

None opens as something else, none ends in a traceback, none hangs. What a changed file says is
read here by hand: the header as JSON, the numbers where it points.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from commands import command
from foreign import CONFIG, State, algebra, gpt2_state, our_logits, write_folder, write_shards
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_checkpoints import refusal
from test_gpt2_folders import close

from tui_gpt.checkpoints.find import find_model
from tui_gpt.checkpoints.weights import load_weights
from tui_gpt.errors import TuiGPTError

Header = dict[str, Any]

_TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


def split(file: Path) -> tuple[Header, bytes]:
    whole = file.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def join(file: Path, header: Header | bytes, numbers: bytes) -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(raw)) + raw + numbers)


def as_it_stands(file: Path) -> State:
    """Read a sound file by hand."""
    header, numbers = split(file)
    header.pop("__metadata__", None)
    found = {}
    for key, entry in header.items():
        start, end = entry["data_offsets"]
        values = np.frombuffer(numbers[start:end], _TYPES[entry["dtype"]])
        found[key] = torch.from_numpy(values.astype(np.float64)).reshape(entry["shape"])
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "gpt2") / "model.safetensors"


# Sound afterwards ----------------------------------------------------------------------------


def swap_norms(header: Header) -> None:
    """Two tensors of one shape change places."""
    one, other = header["h.0.ln_1.weight"], header["h.1.ln_2.weight"]
    header["h.0.ln_1.weight"], header["h.1.ln_2.weight"] = other, one


def swap_square(header: Header) -> None:
    one, other = header["h.0.attn.c_proj.weight"], header["h.1.attn.c_proj.weight"]
    header["h.0.attn.c_proj.weight"], header["h.1.attn.c_proj.weight"] = other, one


def swap_layers(header: Header) -> None:
    """The two blocks change places."""
    first = {key: value for key, value in header.items() if key.startswith("h.0.")}
    for key, value in first.items():
        other = key.replace("h.0.", "h.1.")
        header[key], header[other] = header[other], value


def reverse(header: Header) -> None:
    """The header lists its tensors backwards."""
    entries = list(header.items())
    header.clear()
    header.update(reversed(entries))


def describe(header: Header) -> None:
    header["__metadata__"] = {"format": "pt", "odd": "\x1b[31m"}


@pytest.mark.parametrize("change", [swap_norms, swap_square, swap_layers, reverse, describe])
def test_a_header_that_is_still_sound_is_what_it_now_says(
    file: Path, change: Callable[[Header], None]
) -> None:
    header, numbers = split(file)
    change(header)
    join(file, header, numbers)
    assert close(our_logits(file), algebra(as_it_stands(file)))


def turn_square(state: State) -> None:
    """A square matrix the wrong way round has the right shape, and is another model."""
    state["h.0.attn.c_proj.weight"] = state["h.0.attn.c_proj.weight"].t()


def exchange_keys_and_values(state: State) -> None:
    q, k, v = state["h.1.attn.c_attn.weight"].chunk(3, 1)
    state["h.1.attn.c_attn.weight"] = torch.cat((q, v, k), 1)


def scale(state: State) -> None:
    state["h.1.mlp.c_fc.weight"] = state["h.1.mlp.c_fc.weight"] * 30


def one_block_twice(state: State) -> None:
    for key in list(state):
        if key.startswith("h.1."):
            state[key] = state[key.replace("h.1.", "h.0.")].clone()


@pytest.mark.parametrize("change", [turn_square, exchange_keys_and_values, scale, one_block_twice])
def test_other_numbers_are_another_model(tmp_path: Path, change: Callable[[State], None]) -> None:
    state = gpt2_state()
    change(state)
    assert close(our_logits(write_folder(tmp_path / "gpt2", state)), algebra(state))
    assert not close(our_logits(tmp_path / "gpt2"), algebra(gpt2_state()))


@pytest.mark.parametrize("heads", [1, 4, 8])
def test_the_heads_are_the_configs(tmp_path: Path, heads: int) -> None:
    folder = write_folder(tmp_path / "gpt2", n_head=heads)
    assert close(our_logits(folder), algebra(gpt2_state(), n_head=heads))


# Refused -------------------------------------------------------------------------------------


def rename(header: Header) -> None:
    header["h.0.ln_3.weight"] = header.pop("h.0.ln_1.weight")


def rename_to_another_layer(header: Header) -> None:
    header["h.2.ln_1.weight"] = header.pop("h.1.ln_1.weight")


def name_in_capitals(header: Header) -> None:
    header["WTE.weight"] = header.pop("wte.weight")


def turn_shape(key: str) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        header[key]["shape"] = header[key]["shape"][::-1]

    return change


def another_axis(header: Header) -> None:
    header["ln_f.bias"]["shape"] = [1, 8]


def flatten(header: Header) -> None:
    header["wpe.weight"]["shape"] = [128]


def whole_numbers(header: Header) -> None:
    header["wpe.weight"]["dtype"] = "I32"


def half_as_wide(header: Header) -> None:
    header["wpe.weight"]["dtype"] = "F16"


def unknown_format(header: Header) -> None:
    header["wpe.weight"]["dtype"] = "Q4_K"


def overlap(header: Header) -> None:
    header["h.0.ln_2.weight"]["data_offsets"] = header["h.0.ln_1.weight"]["data_offsets"]


def leave_a_gap(header: Header) -> None:
    del header["h.0.ln_1.weight"]


def empty_extra(header: Header) -> None:
    header["h.0.attn.extra"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}


def negative(header: Header) -> None:
    header["ln_f.bias"]["shape"] = [-8]


def fraction(header: Header) -> None:
    header["ln_f.bias"]["shape"] = [8.0]


def truth(header: Header) -> None:
    header["ln_f.bias"]["shape"] = [True, 8]


def huge(header: Header) -> None:
    header["wte.weight"]["shape"] = [2**62, 2**62]


def huge_offset(header: Header) -> None:
    header["wte.weight"]["data_offsets"] = [2**63, 2**63 + 352]


def many_axes(header: Header) -> None:
    header["ln_f.bias"]["shape"] = [8, *[1] * 5000]


REFUSED = [
    rename, rename_to_another_layer, name_in_capitals, turn_shape("h.0.attn.c_attn.weight"),
    turn_shape("wpe.weight"), turn_shape("h.1.mlp.c_proj.weight"), another_axis, flatten,
    whole_numbers, half_as_wide, unknown_format, overlap, leave_a_gap, empty_extra, negative,
    fraction, truth, huge, huge_offset, many_axes,
]  # fmt: skip


@pytest.mark.parametrize("change", REFUSED)
def test_a_header_that_is_not_sound_is_refused(
    file: Path, change: Callable[[Header], None]
) -> None:
    header, numbers = split(file)
    change(header)
    join(file, header, numbers)
    said = refusal(file.parent)
    assert len(said) < 1000
    outcome = command("trace", "-m", str(file.parent), "--ids", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.count("\n") == 1


def test_a_tensor_listed_twice_is_refused(file: Path) -> None:
    header, numbers = split(file)
    raw = json.dumps(header)[:-1] + ', "wpe.weight": ' + json.dumps(header["wpe.weight"]) + "}"
    join(file, raw.encode(), numbers)
    assert "names wpe.weight twice" in refusal(file)


def test_two_files_in_one_are_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes() * 2)
    assert "damaged or incomplete" in refusal(file)


@pytest.mark.parametrize("by", [-8, -1, 1, 8, 2**40, 2**63 - 1])
def test_another_length_of_the_header_is_refused(file: Path, by: int) -> None:
    whole = file.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    file.write_bytes(struct.pack("<Q", max(0, length + by)) + whole[8:])
    assert "damaged" in refusal(file)


def test_a_header_of_a_gigabyte_is_not_read(file: Path) -> None:
    with file.open("r+b") as opened:  # a sparse file: no disk is used
        opened.write(struct.pack("<Q", 2**30))
        opened.truncate(2**31)
    assert "header of 1073741824 bytes; more than" in refusal(file)


@pytest.mark.parametrize("again", [False, True])
def test_weights_that_do_not_fit_into_memory_are_not_touched(
    file: Path, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = SimpleNamespace(read_text=lambda: "MemAvailable:  1000000 kB\n")
    monkeypatch.setattr("tui_gpt.checkpoints.memory_check.Path", lambda _: told)
    header, _ = split(file)  # a sparse file: no disk is used
    rows, end = 2**26, 0
    header["wte.weight"]["shape"] = [rows, 8]
    if again:
        header["lm_head.weight"] = {"dtype": "F32", "shape": [rows, 8]}
    for entry in header.values():
        size = 4 * int(np.prod(entry["shape"]))
        entry["data_offsets"] = [end, end + size]
        end += size
    join(file, header, b"")
    with file.open("r+b") as opened:
        opened.truncate(opened.seek(0, 2) + end)
    config = json.loads((file.parent / "config.json").read_text())
    (file.parent / "config.json").write_text(json.dumps({**config, "vocab_size": rows}))
    outcome = command("trace", "-m", str(file.parent), "--ids", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert "needs 2.1 GB for its weights and 1.0 GB are free" in outcome.err


def test_shards_that_changed_names_are_refused(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "gpt2", gpt2_state())
    one, other = (folder / f"model-0000{i}-of-00002.safetensors" for i in (1, 2))
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    assert "does not say" in refusal(folder)  # one shard twice
    other.write_bytes(first)
    assert "does not say" in refusal(folder)


def test_every_bit_of_the_header_flipped_is_refused_or_sound(file: Path) -> None:
    whole = file.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    expected = algebra(as_it_stands(file))
    outcomes = {"opened": 0, "refused": 0}
    for place in range(8 + length):
        changed = bytearray(whole)
        changed[place] ^= 1 << (place % 8)
        file.write_bytes(changed)
        try:
            logits = our_logits(file)
        except TuiGPTError:
            outcomes["refused"] += 1
            continue
        outcomes["opened"] += 1
        assert close(logits, expected) or close(logits, algebra(as_it_stands(file)))
    assert outcomes["refused"] > 1000
    assert outcomes["opened"] < 50  # blanks


def test_a_flipped_bit_of_a_number_is_that_number(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[-2] ^= 0x20
    file.write_bytes(whole)
    assert close(our_logits(file), algebra(as_it_stands(file)))


# At random -----------------------------------------------------------------------------------

KEYS = (*gpt2_state(), "lm_head.weight", "h.0.attn.bias", "h.2.ln_1.weight", "odd", "__metadata__")

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.sampled_from([2**31, 2**63, 10**400, 0.5, "", "8", "gelu", "llama", [], {}, [8], [8, 8]]),
    st.text(max_size=3),
)

FIELDS = (
    *CONFIG, "n_inner", "hidden_size", "n_ctx", "tie_word_embeddings", "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "format", "pruned_heads",
    "num_hidden_layers", "_name_or_path", "attn_pdrop",
)  # fmt: skip

HEADER_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("drop"), st.sampled_from(KEYS)),
        st.tuples(st.just("rename"), st.sampled_from(KEYS), st.sampled_from(KEYS)),
        st.tuples(st.just("swap"), st.sampled_from(KEYS), st.sampled_from(KEYS)),
        st.tuples(st.just("copy"), st.sampled_from(KEYS), st.sampled_from(KEYS)),
        st.tuples(st.just("prefix"), st.sampled_from(KEYS), st.sampled_from(("module.", "x."))),
        st.tuples(st.just("turn"), st.sampled_from(KEYS)),
        st.tuples(
            st.just("set"), st.sampled_from(KEYS),
            st.sampled_from(("shape", "dtype", "data_offsets", "odd")), ODD,
        ),
        st.tuples(st.just("replace"), st.sampled_from(KEYS), ODD),
    ),
    max_size=3,
)  # fmt: skip

CONFIG_CHANGES = st.dictionaries(
    st.sampled_from(FIELDS), st.one_of(ODD, st.just("drop")), max_size=3
)


def apply(header: Header, change: tuple[Any, ...]) -> None:
    """Make one change; one that has nothing to change does nothing."""
    kind, key, *rest = change
    if kind == "replace":
        header[key] = rest[0]
    elif key not in header:
        return
    elif kind == "drop":
        del header[key]
    elif kind == "rename":
        header[rest[0]] = header.pop(key)
    elif kind == "copy":
        header[rest[0]] = header[key]
    elif kind == "swap" and rest[0] in header:
        header[key], header[rest[0]] = header[rest[0]], header[key]
    elif kind == "prefix":
        header[rest[0] + key] = header.pop(key)
    elif kind == "turn" and isinstance(header[key], dict) and "shape" in header[key]:
        shape = header[key]["shape"]
        header[key] = {**header[key], "shape": shape[::-1] if isinstance(shape, list) else shape}
    elif kind == "set" and isinstance(header[key], dict):
        header[key] = {**header[key], rest[0]: rest[1]}


@settings(
    max_examples=2000,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(changes=HEADER_CHANGES, fields=CONFIG_CHANGES, cut=st.sampled_from([0] * 8 + [-5, 3]))
def test_a_checkpoint_changed_at_random_is_refused_or_is_what_it_says(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[Any, ...]],
    fields: dict[str, Any],
    cut: int,
) -> None:
    folder = tmp_path_factory.getbasetemp() / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    file = write_folder(folder) / "model.safetensors"
    header, numbers = split(file)
    for change in changes:
        apply(header, change)
    join(file, header, numbers[:cut] if cut < 0 else numbers + b"\0" * cut)
    config = {**CONFIG, **{key: value for key, value in fields.items() if value != "drop"}}
    config = {key: value for key, value in config.items() if fields.get(key) != "drop"}
    (folder / "config.json").write_text(json.dumps(config))
    refused = ""
    try:
        source = find_model(str(folder))
        model = load_weights(source)
    except TuiGPTError as error:
        refused = str(error)
    if refused:
        assert "\n" not in refused
        assert len(refused) < 1000
        return
    stored = {key.removeprefix("module."): x for key, x in as_it_stands(file).items()}
    head = stored.pop("lm_head.weight", None)
    assert source.config.tied == (head is None or torch.equal(head, stored["wte.weight"]))
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.double(), by_hand(stored, name)), name
    sizes = source.config
    assert (sizes.n_embd, sizes.n_layer) == (8, 2)
    assert sizes.n_head == config.get("n_head", config.get("num_attention_heads"))
    assert sizes.layer_norm_epsilon == config.get("layer_norm_epsilon", 1e-5)
    named = config.get("activation_function") or "gelu_new"
    assert sizes.activation == {"gelu_new": "gelu_tanh", "gelu": "gelu"}[named]
    assert config.get("scale_attn_weights") in (None, True)
    assert config.get("scale_attn_by_inverse_layer_idx") in (None, False)


def by_hand(stored: State, name: str) -> torch.Tensor:
    """Give what a parameter must be, from a GPT-2 file."""
    for i, part in enumerate(("q", "k", "v")):
        if f".attn.{part}." in name:
            whole = stored[name.replace(f".{part}.", ".c_attn.")]
            piece = whole[..., 8 * i : 8 * i + 8]
            return piece.t() if piece.ndim == 2 else piece
    whole = stored[name]
    return whole.t() if ".c_" in name and whole.ndim == 2 else whole
