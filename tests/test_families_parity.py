"""Every family against transformers: tiny random models, norms not ones, late positions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from families import FAMILIES, Family, ours_of, reference_of
from torch import Tensor

from tui_gpt.model.gpt import KeysValues
from tui_gpt.trace.record import Recorder

TOLERANCE = 5e-5
"""Float32 sums in another order, over three layers of width 32."""
N_POSITIONS = 70


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


def some_ids() -> Tensor:
    return torch.randint(0, 61, (1, N_POSITIONS), generator=torch.Generator().manual_seed(3))


def test_every_block_and_pattern_agrees_with_the_reference(family: Family) -> None:
    reference = reference_of(family)
    recorder = Recorder()
    with torch.no_grad():
        theirs = reference(some_ids(), output_hidden_states=True, output_attentions=True)
        logits = ours_of(family, reference)(some_ids(), recorder)
    assert torch.allclose(logits, theirs.logits, rtol=0, atol=TOLERANCE)
    for layer in range(3):
        border = recorder.seen["resid_pre", layer]
        assert torch.allclose(border, theirs.hidden_states[layer], rtol=0, atol=TOLERANCE)
        pattern = recorder.seen["pattern", layer]
        assert torch.allclose(pattern, theirs.attentions[layer], rtol=0, atol=TOLERANCE)


def test_fifty_greedy_tokens_agree_with_the_reference_across_the_cache(family: Family) -> None:
    reference = reference_of(family)
    model = ours_of(family, reference)
    prompt = some_ids()[:, :5]
    with torch.no_grad():
        wanted = reference.generate(
            prompt, max_new_tokens=50, do_sample=False, eos_token_id=None, pad_token_id=0
        )[0]
        past: list[KeysValues] = []
        ids, new = prompt, prompt
        for _ in range(50):
            new = model(new, past=past)[:, -1:].argmax(-1)
            ids = torch.cat((ids, new), dim=1)
    assert ids[0].tolist() == wanted.tolist()


def test_tapping_changes_nothing(family: Family) -> None:
    model = ours_of(family, reference_of(family))
    keep: Callable[..., Tensor] = Recorder()
    with torch.no_grad():
        assert torch.equal(model(some_ids()), model(some_ids(), keep))
