"""A GGUF file's header: read without the package, and believed only as far as it holds."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from tui_gpt.errors import DamagedModel
from tui_gpt.gguf_header import BLOCKS, read_gguf_header


def write_gguf(path: Path) -> Path:
    """Write a small file with every kind of pair, by the package itself."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_array("tokenizer.ggml.tokens", ["a", "日", "\udce9".encode("utf-8", "replace")])
    writer.add_array("tokenizer.ggml.token_type", [1, 1, 3])
    writer.add_tensor("token_embd.weight", np.arange(12, dtype=np.float32).reshape(3, 4))
    packed = gguf.quants.quantize(np.ones((2, 64), np.float32), gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.ffn_up.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "small.gguf")


def test_the_header_is_what_the_package_reads(whole: Path) -> None:
    header, theirs = read_gguf_header(whole), gguf.GGUFReader(whole)
    assert [tensor.name for tensor in header.tensors] == [it.name for it in theirs.tensors]
    for ours, other in zip(header.tensors, theirs.tensors, strict=True):
        assert ours.shape == tuple(int(size) for size in other.shape)[::-1]
        assert (ours.start, ours.n_bytes) == (other.data_offset, other.n_bytes)
        assert ours.type_name == other.tensor_type.name
    assert header.values["general.architecture"] == "llama"
    assert header.values["llama.block_count"] == 2
    assert header.values["tokenizer.ggml.add_bos_token"] is True
    assert header.texts("tokenizer.ggml.tokens")[:2] == (b"a", "日".encode())
    assert header.numbers("tokenizer.ggml.token_type") == (1, 1, 3)
    assert header.texts("nothing of that name") == ()


def test_block_types_are_those_that_the_package_unpacks() -> None:
    for number, block in BLOCKS.items():
        theirs = gguf.GGMLQuantizationType(number)
        assert block.name == theirs.name
        assert (block.n_numbers, block.n_bytes) == gguf.GGML_QUANT_SIZES[theirs]
        blocks = np.zeros((1, block.n_bytes), np.uint8)
        if block.name in ("F32", "F16"):
            continue  # numbers as they are
        assert gguf.quants.dequantize(blocks, theirs).shape == (1, block.n_numbers)


def test_reading_a_header_imports_no_numpy(whole: Path) -> None:
    probe = (
        "import sys; from pathlib import Path\n"
        "from tui_gpt.gguf_header import read_gguf_header as read\n"
        f"read(Path({str(whole)!r})); sys.exit('numpy' in sys.modules or 'gguf' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", probe]).returncode == 0


def header_of(*pairs: bytes, tensors: bytes = b"", n_tensors: int = 0, version: int = 3) -> bytes:
    counts = struct.pack("<IQQ", version, n_tensors, len(pairs))
    return b"GGUF" + counts + b"".join(pairs) + tensors


def text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


ROOM = bytes(4096)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"GGUX" + ROOM, "it does not begin with GGUF"),
        (b"", "is empty"),
        (b"GGUF\3", "its header asks for 8"),
        (header_of(version=1) + ROOM, "of version 1"),
        (b"GGUF\0\0\0\3" + ROOM, "written for big-endian machines"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "9223372036854775808 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "9223372036854775808 key-value pairs"),
        (header_of(struct.pack("<Q", 2**63)), "a text of 9223372036854775808 bytes"),
        (header_of(pair(b"\xff\xfe", 4, b"\1\0\0\0")), "a key is not UTF-8"),
        (header_of(pair(b"a", 99, b"")), "a is of type 99"),
        (header_of(*[pair(b"a", 4, b"\1\0\0\0")] * 2), "names a twice"),
        (header_of(pair(b"a", 9, struct.pack("<IQ", 9, 1)) + ROOM), "a list of lists"),
        (header_of(pair(b"a", 9, struct.pack("<IQ", 77, 1)) + ROOM), "a list of type 77"),
        (header_of(pair(b"a", 9, struct.pack("<IQ", 8, 2**62))), "damaged or incomplete"),
        (header_of(pair(b"a", 9, struct.pack("<IQ", 6, 2**62))), "damaged or incomplete"),
        (
            header_of(pair(b"a", 9, struct.pack("<IQ", 8, 2) + struct.pack("<Q", 2**63) + ROOM)),
            "ends inside a list of texts",
        ),
        (header_of(tensors=tensor(b"t", (2,) * 5, 0, 0), n_tensors=1) + ROOM, "t has 5 axes"),
        (header_of(tensors=tensor(b"t", (4,), 9, 0), n_tensors=1) + ROOM, "t is of type 9"),
        (header_of(tensors=tensor(b"t", (33,), 8, 0), n_tensors=1) + ROOM, "blocks of 32"),
        (header_of(tensors=tensor(b"t", (0, 4), 0, 0), n_tensors=1) + ROOM, "does not divide"),
        (header_of(tensors=tensor(b"t", (4,), 0, 7), n_tensors=1) + ROOM, "no multiple of 32"),
        (header_of(tensors=tensor(b"t", (2**40, 2**40), 0, 0), n_tensors=1) + ROOM, "incomplete"),
        (header_of(tensors=tensor(b"t", (4,), 0, 2**62), n_tensors=1) + ROOM, "incomplete"),
        (
            header_of(
                tensors=tensor(b"t", (16,), 0, 0) + tensor(b"u", (16,), 0, 32), n_tensors=2
            ) + ROOM,
            "u begins at byte",
        ),
        (
            header_of(
                tensors=tensor(b"t", (4,), 0, 0) + tensor(b"t", (4,), 0, 32), n_tensors=2
            ) + ROOM,
            "names t twice",
        ),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused_by_name(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(DamagedModel, match=said):
        read_gguf_header(path)


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(at=some.integers(0, 700), new=some.binary(min_size=1, max_size=9), cut=some.booleans())
def test_a_spoilt_header_is_read_or_refused_and_nothing_else(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: bool
) -> None:
    content = whole.read_bytes()
    spoilt = content[:at] + new + (b"" if cut else content[at + len(new) :])
    path = tmp_path_factory.getbasetemp() / "spoilt.gguf"
    path.write_bytes(spoilt)
    try:
        header = read_gguf_header(path)
        for key in header.lists:
            header.texts(key) if header.lists[key].kind == 8 else header.numbers(key)
    except DamagedModel:
        return
    assert all(one.start + one.n_bytes <= len(spoilt) for one in header.tensors)
