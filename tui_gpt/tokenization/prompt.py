"""Prompts for one model: text or ids in, a laid-out run out, before any number is computed."""

from __future__ import annotations

import re
from dataclasses import replace

from tui_gpt.errors import EmptyPrompt, NotTokenIds, PromptTooLong, UnknownTokenId
from tui_gpt.records.stages import stage_table
from tui_gpt.records.tokens import Token, joined_text
from tui_gpt.records.trace import ModelFacts, Run
from tui_gpt.tokenization.tokenizer import Tokenizer


class PromptReader:
    """Cuts prompts with a model's tokenizer, and lays out the stages for them."""

    def __init__(
        self, facts: ModelFacts, tokenizer: Tokenizer, notices: tuple[str, ...] = ()
    ) -> None:
        """Take a model's vocabulary.

        Args:
            facts: Which model it is.
            tokenizer: Its own.
            notices: What is said with every run.
        """
        self.facts = facts
        self.tokenizer = tokenizer
        self.notices = notices

    def prepare(
        self,
        text: str,
        *,
        crop: bool = False,
        slide: bool = False,
        bos: bool = True,
        notices: tuple[str, ...] = (),
    ) -> Run:
        """Cut a text into tokens and lay out the stages.

        Args:
            text: Used as it is.
            crop: Keep the last tokens where there are too many.
            slide: Keep all of them, for a reader whose window slides over them.
            bos: Put the tokens around it that the tokenizer adds.
            notices: What the caller did to the text.

        Raises:
            EmptyPrompt: There is no token.
            UnknownCharacters: The vocabulary lacks some of the text.
            NoTokenizer: The model has no vocabulary.
            PromptTooLong: There are more tokens than positions, and they may not be.
        """
        if not text:
            raise EmptyPrompt
        own = tuple(self.token(token_id) for token_id in self.tokenizer.encode(text))
        if not own:
            raise EmptyPrompt
        before, after = (self._added(ids) if bos else () for ids in self.tokenizer.added)
        notices = (*notices, *self.tokenizer.notices(text))
        if not bos:
            notices = tuple(notice for notice in notices if "--no-bos" not in notice)
        return self._lay_out((*before, *own, *after), text, crop, slide, notices)

    def prepare_ids(self, ids: tuple[int, ...], *, crop: bool = False, slide: bool = False) -> Run:
        """Lay out the stages for given token ids; see `prepare`.

        Raises:
            UnknownTokenId: An id lies outside the vocabulary.
        """
        if not ids:
            raise EmptyPrompt
        rows = self.facts.config.vocab_size
        for token_id in ids:
            if not 0 <= token_id < rows:
                raise UnknownTokenId(token_id, rows)
        tokens = tuple(self.token(token_id) for token_id in ids)
        notices = () if self.reads_text else self.tokenizer.notices("")
        return self._lay_out(tokens, None, crop, slide, notices)

    def read_ids(self, listed: str) -> tuple[int, ...]:
        """Read token ids with commas or blanks between.

        Raises:
            NotTokenIds: Something else is among them.
        """
        parts = [part for part in re.split(r"[\s,]+", listed) if part]
        for part in parts:
            if not re.fullmatch(r"-?[0-9]{1,18}", part):
                raise NotTokenIds(part, self.facts.config.vocab_size)
        return tuple(int(part) for part in parts)

    @property
    def reads_text(self) -> bool:
        """False where there is no vocabulary, so that a prompt is a list of ids."""
        return self.tokenizer.vocab_size > 0

    def prepare_typed(self, typed: str, *, crop: bool = False, bos: bool = True) -> Run:
        """Lay out the stages for what a person typed: a text, or ids where only ids are read."""
        if self.reads_text:
            return self.prepare(typed, crop=crop, bos=bos)
        return self.prepare_ids(self.read_ids(typed), crop=crop)

    def adapt_run(self, run: Run, *, crop: bool = False, bos: bool = True) -> Run:
        """Lay out the stages for the prompt of another model.

        A text is cut anew. Where one of the two models has no vocabulary, the ids are the prompt;
        if this one's table is too small for them, it starts from id 0 and says so.
        """
        ids = tuple(token.id for token in run.tokens)
        if not run.is_ids_only and self.reads_text:
            return self.prepare(run.prompt, crop=crop, bos=bos)
        if all(token_id < self.facts.config.vocab_size for token_id in ids):
            return self.prepare_ids(ids, crop=crop)
        started = self.prepare_ids((0,))
        said = "the ids of the prompt before are not all in this vocabulary: it starts from id 0"
        return replace(started, notices=(*started.notices, said))

    def token(self, token_id: int) -> Token:
        """Give a token; ids the tokenizer does not know have no bytes."""
        if token_id < self.tokenizer.vocab_size:
            return self.tokenizer.token(token_id)
        return Token(token_id, b"", unused=self.tokenizer.vocab_size > 0)

    def _added(self, ids: tuple[int, ...]) -> tuple[Token, ...]:
        return tuple(replace(self.token(token_id), added=True) for token_id in ids)

    def _lay_out(
        self,
        tokens: tuple[Token, ...],
        text: str | None,
        crop: bool,
        slide: bool,
        notices: tuple[str, ...],
    ) -> Run:
        config = self.facts.config
        size, count = config.block_size, len(tokens)
        notices = (*notices, *self.notices)
        if count > size:
            if not crop and not slide:
                raise PromptTooLong(count, size)
            fate = "were cut" if crop else "are not read"
            notices = (
                *notices,
                f"the prompt is {count} tokens and this model reads {size}: "
                f"the first {count - size} {fate}",
            )
            if crop:
                tokens, text = tokens[-size:], None
        if not self.reads_text:
            text = ", ".join(str(token.id) for token in tokens)
        prompt = joined_text(token for token in tokens if not token.added) if text is None else text
        return Run(self.facts, prompt, tokens, notices, stage_table(config, min(count, size)))
