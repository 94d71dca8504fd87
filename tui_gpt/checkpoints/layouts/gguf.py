"""One GGUF file, as llama.cpp reads it: Llama, Mistral, SmolLM2, Qwen 2 and 3.

The config stands under `ARCH.block_count` and the like. For `llama` the rows of q and k are
stored for a rotation of neighbouring pairs and are put back to halves. The stretched rotation of
Llama 3 is stored as what it comes to, a factor for each frequency (`rope_freqs`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui_gpt.checkpoints.headers import TensorEntry
from tui_gpt.checkpoints.layouts.layout import (
    HEAD,
    STACKED,
    TABLE,
    Arrangement,
    Entries,
    Layout,
    LayoutConfig,
    Location,
    Names,
    NotAWeight,
    Wanted,
    owned_parameters,
)
from tui_gpt.config import GPTConfig, RopeScaling
from tui_gpt.errors import DamagedModel, ImpossibleShape
from tui_gpt.gguf_header import GGUFHeader, read_gguf_header
from tui_gpt.records.vocabulary import VocabularySource

if TYPE_CHECKING:
    import torch

_NAMES = Names(
    {"wte": "token_embd", "ln_f": "output_norm", "lm_head": "output"},
    "blk.{}.",
    {
        "ln_1": "attn_norm",
        "attn.q": "attn_q",
        "attn.k": "attn_k",
        "attn.v": "attn_v",
        "attn.q_norm": "attn_q_norm",
        "attn.k_norm": "attn_k_norm",
        "attn.c_proj": "attn_output",
        "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_gate",
        "mlp.c_up": "ffn_up",
        "mlp.c_proj": "ffn_down",
    },
)

_PAIRED = ("llama",)
"""Architectures whose rows of q and k are stored for neighbouring pairs."""

_FREQUENCIES = "rope_freqs.weight"

_LLAMA_3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original": 8192}
"""What every Llama 3 file was stretched with, besides its factor."""


class GGUFLayout(Layout):
    """The container of llama.cpp."""

    kind = "gguf"
    title = "GGUF"
    architectures = ("llama", "qwen2", "qwen3")

    def recognises(self, found: Location) -> bool:
        """The ending of the file's name tells; the file itself is held against it."""
        return found.files is not None and found.files.container == "gguf"

    def read_config(self, found: Location, entries: Entries) -> LayoutConfig:
        """Read the pairs of the header; see `Layout.read_config`."""
        assert found.files is not None
        read = _Pairs(read_header_of(found.files.paths[0]))
        family = read.text("general.architecture")
        if family not in self.architectures:
            raise DamagedModel(
                f"{read.path}: unsupported architecture {family!r}; in a GGUF file there are "
                + ", ".join(self.architectures)
            )
        width, n_head = read.whole("embedding_length"), read.whole("attention.head_count")
        head_dim = read.optional("attention.key_length") or width // max(1, n_head)
        if read.optional("attention.value_length") not in (None, head_dim):
            raise DamagedModel(f"{read.path}: values are wider or narrower than keys")
        rotated = read.optional("rope.dimension_count") or head_dim
        theta = read.number("rope.freq_base", 10000.0)
        table = entries.get(_NAMES.of(TABLE))
        if table is None:
            raise DamagedModel(f"{read.path} has no {_NAMES.of(TABLE)}, which the config asks for")
        n_kv_head = read.optional("attention.head_count_kv")
        try:
            config = GPTConfig(
                n_layer=read.whole("block_count"),
                n_head=n_head,
                n_kv_head=None if n_kv_head == n_head else n_kv_head,
                n_embd=width,
                own_head_dim=None if head_dim * n_head == width else head_dim,
                n_inner=read.whole("feed_forward_length"),
                block_size=read.whole("context_length"),
                vocab_size=table.shape[0],
                positions="rotary",
                rope_theta=theta,
                rotary_fraction=rotated / head_dim,
                rope_scaling=_scaling(read, entries.get(_FREQUENCIES), theta, rotated),
                activation="silu",
                gated=True,
                norm_type="rmsnorm",
                layer_norm_epsilon=read.number("attention.layer_norm_rms_epsilon", None),
                bias=False,
                qkv_bias="blk.0.attn_q.bias" in entries,
                qk_norm="blk.0.attn_q_norm.weight" in entries,
                tied=_NAMES.of(HEAD) not in entries,
            )
        except ImpossibleShape as error:
            raise DamagedModel(f"{read.path}: {error}") from error
        self._check_rotation(read)
        called = read.header.values.get("general.name")
        return LayoutConfig(config, str(called) if called else None, tuple(read.remarks))

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """Every parameter under the container's name; see `Layout.wanted`."""
        return self.wanted_in(config, paired=True)

    def wanted_in(self, config: GPTConfig, *, paired: bool) -> Iterator[Wanted]:
        """List what a file must have, its q and k stored for pairs or not."""
        for parameter in owned_parameters(config):
            arrangement = STACKED
            module = parameter.name.rpartition(".")[0]
            if paired and module.endswith(".attn.q"):
                arrangement = _pairs_to_halves(config.n_head)
            elif paired and module.endswith(".attn.k"):
                arrangement = _pairs_to_halves(config.n_key_head)
            name = self.file_name(parameter.name)
            yield Wanted(name, parameter.shape, (parameter.name,), arrangement)

    def not_a_weight(self, name: str, entry: TensorEntry, config: GPTConfig) -> NotAWeight | None:
        """The factors of the frequencies are in the config; see `Layout.not_a_weight`."""
        return "frequencies" if name == _FREQUENCIES else None

    def vocabulary(self, found: Location) -> VocabularySource:
        """The file has its own."""
        assert found.files is not None
        return VocabularySource("gguf", found.files.paths[0])

    def file_name(self, parameter: str) -> str:
        """Translate; see `Layout.file_name`."""
        return _NAMES.of(parameter)

    @staticmethod
    def _check_rotation(read: _Pairs) -> None:
        """Refuse a stretched rotation that is not Llama 3's."""
        kind = read.header.values.get(f"{read.family}.rope.scaling.type", "none")
        if kind not in ("none", ""):
            raise DamagedModel(
                f"{read.path}: rope.scaling.type is {kind!r}, which is not computed here"
            )
        for name in ("expert_count", "attention.sliding_window"):
            if read.optional(name) is not None:
                raise DamagedModel(
                    f"{read.path}: {read.family}.{name} is {read.optional(name)}, which is not "
                    "computed here"
                )


class UnpairedGGUFLayout(GGUFLayout):
    """The same container where q and k are stored by halves already."""

    def recognises(self, found: Location) -> bool:
        """The architecture that the header names tells."""
        if not super().recognises(found):
            return False
        assert found.files is not None
        header = read_header_of(found.files.paths[0])
        return header.values.get("general.architecture") not in _PAIRED

    def wanted(self, config: GPTConfig) -> Iterator[Wanted]:
        """Nothing is turned; see `Layout.wanted`."""
        return self.wanted_in(config, paired=False)


class _Pairs:
    """Reads the key-value pairs of one architecture."""

    def __init__(self, header: GGUFHeader) -> None:
        self.header = header
        self.path = header.path
        self.remarks: list[str] = []
        self.family = str(header.values.get("general.architecture", ""))

    def text(self, key: str) -> str:
        found = self.header.values.get(key)
        if not isinstance(found, str):
            raise DamagedModel(f"{self.path} has no {key}")
        return found

    def whole(self, name: str) -> int:
        found = self.optional(name)
        if found is None:
            raise DamagedModel(f"{self.path} has no {self.family}.{name}; no size is assumed")
        return found

    def optional(self, name: str) -> int | None:
        found = self.header.values.get(f"{self.family}.{name}")
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise DamagedModel(
                f"{self.path}: {self.family}.{name} is {found!r}; it must be a whole number"
            )
        return found

    def number(self, name: str, assumed: float | None) -> float:
        """Give a float32 as the short decimal that it was written as."""
        found = self.header.values.get(f"{self.family}.{name}", assumed)
        if found is None:
            raise DamagedModel(f"{self.path} has no {self.family}.{name}; none is assumed")
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise DamagedModel(
                f"{self.path}: {self.family}.{name} is {found!r}; it must be a number"
            )
        return _shortest(float(found))


def read_header_of(path: Path) -> GGUFHeader:
    """Read a header, or give the one that was read from this very file before."""
    found = path.stat()
    return _read_once(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=2)
def _read_once(path: Path, changed: int, size: int) -> GGUFHeader:
    return read_gguf_header(path)


def _shortest(number: float) -> float:
    """Give the shortest decimal that is the same float32, as a double."""
    for digits in range(1, 10):
        short = float(f"{number:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", number):
            return short
    return number


def _scaling(
    read: _Pairs, factors: TensorEntry | None, theta: float, rotated: int
) -> RopeScaling | None:
    """Find the stretching that gives the stored factors; every Llama 3 has the same bounds.

    Raises:
        DamagedModel: The factors are none of Llama 3's.
    """
    if factors is None:
        return None
    if factors.dtype != "F32" or factors.shape != (rotated // 2,):
        raise DamagedModel(
            f"{read.path}: {_FREQUENCIES} is {factors.shape} of {factors.dtype}, and there are "
            f"{rotated // 2} frequencies"
        )
    with read.path.open("rb") as file:
        file.seek(factors.start)
        stored = struct.unpack(f"<{rotated // 2}f", file.read(4 * (rotated // 2)))
    scaling = RopeScaling(factor=_shortest(max(stored)), **_LLAMA_3)  # type: ignore[arg-type]  # as the table says
    for i, factor in enumerate(stored):
        frequency = theta ** (-2 * i / rotated)
        if not math.isclose(frequency / scaling.stretched(frequency), factor, rel_tol=1e-4):
            raise DamagedModel(
                f"{read.path}: {_FREQUENCIES} stretches frequency {i} by {factor:g}, which is "
                "not how Llama 3 does it, and only that is computed here"
            )
    read.remarks.append(f"the rotation is stretched by {scaling.factor:g}, as Llama 3 does it")
    return scaling


def _pairs_to_halves(n_head: int) -> Arrangement:
    """Put the rows of each head back from neighbouring pairs to two halves."""

    def split(tensor: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
        pairs = tensor.reshape(n_head, -1, 2, *tensor.shape[1:])  # (H, D / 2, 2, …)
        return (pairs.transpose(1, 2).flatten(0, 2),)

    return Arrangement(split, note="rows put back from pairs to halves")


GGUF, GGUF_UNPAIRED = GGUFLayout(), UnpairedGGUFLayout()
