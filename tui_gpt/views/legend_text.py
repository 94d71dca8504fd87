"""How to read the picture, for the help: the stream's gutter, the scales, the marks."""

from __future__ import annotations

from rich.text import Text

from tui_gpt.views.palette import Mark, Palette
from tui_gpt.views.text import transliterate


def how_to_read(palette: Palette) -> list[tuple[str, list[Text]]]:
    """Give headings, each with its sentences, in this terminal's characters and colours."""
    return [
        (
            "The list on the left",
            [
                _say(palette, "Every step of the forward pass, in order, with its shape and the"),
                _say(palette, "parameters it owns. The line beside it is the residual stream: it"),
                _say(palette, "branches off to a sub-layer, and + is where the result is added."),
            ],
        ),
        (
            "The picture on the right",
            [
                _scale(palette, palette.sequential, " from 0 to 1: attention and probabilities"),
                _scale(palette, palette.diverging, " below 0, around 0, above 0: all the rest,"),
                _say(palette, "          up to the largest magnitude of the tensor."),
                _mark(palette, palette.nan, " not a number  ", palette.above, " infinite  "),
                _say(palette, "Blank cells in attn_scores lie in the future and have no value."),
                _say(palette, "The line under the picture reads one cell with all its digits."),
            ],
        ),
        (
            "The text that grows (pane 7)",
            [
                _say(
                    palette, "Greedy: the highest logit is taken, the lowest id among equal ones."
                ),
                _say(palette, "It often ends in a loop: what was just said makes itself likelier."),
                _say(palette, "Nothing is penalised to hide that. End-of-text ends nothing: it is"),
                _say(palette, "a token like any other. Tokens before the upright line have fallen"),
                _say(palette, "out of the window; the model does not read them any more."),
            ],
        ),
        (
            "Good to know",
            [
                _say(palette, "Nothing is drawn that was not computed by the model named above."),
                _say(palette, "“recorded run” is the same model's pass, stored when it shipped."),
                _say(palette, "The mouse is left to your terminal: select and copy as usual."),
                _say(palette, "`tui-gpt trace --stage ID --format json` prints the same numbers."),
            ],
        ),
    ]


def _say(palette: Palette, sentence: str) -> Text:
    return Text(f"  {transliterate(sentence, palette.profile.glyphs)}", palette.plain)


def _scale(palette: Palette, marks: tuple[Mark, ...], words: str) -> Text:
    text = Text("  ", palette.plain)
    for mark in marks:
        text.append(mark.glyph, mark.style)
    text.append(words, palette.plain)
    return text


def _mark(palette: Palette, *parts: Mark | str) -> Text:
    text = Text("  ", palette.plain)
    for part in parts:
        if isinstance(part, Mark):
            text.append(part.glyph, part.style)
        else:
            text.append(part, palette.plain)
    return text
