"""One model with its tokenizer: a prompt goes in, records come out. No printing, no screen.

Opening a session and cutting a prompt into tokens need no tensor library, so a wrong name or
prompt is answered at once; torch is imported with the first numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tui_gpt.checkpoints.find import ModelSource, find_model
from tui_gpt.errors import DamagedModel, TuiGPTError, UnknownStage
from tui_gpt.files import BUNDLED_MODELS, DEFAULT_PROMPT, assets, regular_size
from tui_gpt.records.stages import Parameter, stage_table
from tui_gpt.records.trace import ModelFacts, Run
from tui_gpt.tokenization.open import open_tokenizer
from tui_gpt.tokenization.prompt import PromptReader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tui_gpt.analysis.generation import Stepper
    from tui_gpt.checkpoints.weights import LoadedWeights
    from tui_gpt.model.gpt import GPT
    from tui_gpt.records.analyses.explanation import Explanation
    from tui_gpt.records.analyses.identities import Identities
    from tui_gpt.records.analyses.lens import Lens
    from tui_gpt.records.analyses.output import Output
    from tui_gpt.records.analyses.stream import Stream
    from tui_gpt.records.loader_report import LoaderReport
    from tui_gpt.records.recording import Recording
    from tui_gpt.records.trace import Trace


class Session(PromptReader):
    """A model that was found; its weights are read when first needed and then kept."""

    def __init__(self, source: ModelSource) -> None:
        """Take a model, and read its vocabulary.

        Raises:
            DamagedModel: The vocabulary is not usable.
        """
        config = source.config
        tokenizer, self._said = open_tokenizer(source.vocabulary, config.vocab_size)
        facts = ModelFacts(source.name, config, source.n_parameters, source.kind)
        super().__init__(facts, tokenizer, (*source.notices, *self._said))
        self.source = source
        self._read: LoadedWeights | None = None
        self._loading = Lock()
        self._steppers: dict[int, Stepper] = {}
        self._beside: dict[str, Session] = {}

    @classmethod
    def open(cls, name: str) -> Session:
        """Find a model by name or path, or an untrained one by preset.

        Raises:
            UnknownModel: Nothing is there.
            DamagedModel: Its config or vocabulary is not usable.
        """
        return cls(find_model(name))

    def card(self) -> dict[str, Any]:
        """How the weights came to be, as `card.json` says."""
        from tui_gpt.checkpoints.weights import read_card

        return read_card(self.source)

    def load(self, checking: Callable[[int, int], None] = lambda done, count: None) -> None:
        """Import torch and read the weights, unless that is done.

        Args:
            checking: Told before each tensor how many are read and how many there are; what it
                raises ends the reading, and nothing of it is kept.

        Raises:
            DamagedModel: The weight file is not whole or not of this config.
        """
        from tui_gpt.checkpoints.weights import read_weights

        with self._loading:  # a preload and a first question may meet here
            if self._read is None:
                self._read = read_weights(self.source, checking)

    def report(
        self, checking: Callable[[int, int], None] = lambda done, count: None
    ) -> LoaderReport:
        """Say which tensor of which file became which parameter; see `load`."""
        from tui_gpt.checkpoints.report import report_of

        self.load(checking)
        assert self._read is not None
        tokenizer = self.tokenizer
        return report_of(
            self.source, self._read, tokenizer.description, tokenizer.vocab_size, self._said
        )

    def trace(self, run: Run, *, check_cancelled: Callable[[], None] = lambda: None) -> Trace:
        """Run the model over a prepared prompt.

        Args:
            run: From `prepare` of this session.
            check_cancelled: Called at each activation; what it raises ends the pass.
        """
        from tui_gpt.trace.record import LiveTrace

        return LiveTrace(run, self._loaded(), self.token, check_cancelled=check_cancelled)

    def explain(self, trace: Trace, stage_id: str, index: tuple[int, ...]) -> Explanation:
        """Say where one number of a trace of this model comes from.

        Args:
            trace: Live, or a recording made with these weights.
            stage_id: An id of the stage table.
            index: One number an axis of the stage, from 0.

        Raises:
            UnknownStage: The model has no such stage.
            UnknownCell: The stage has no such cell.
            MissingStage: The stage, or one that it reads, could not be recorded.
        """
        from tui_gpt.analysis.explain import explain

        return explain(trace, self.parameter, stage_id, index)

    @staticmethod
    def stream(trace: Trace, *, check_cancelled: Callable[[], None] = lambda: None) -> Stream:
        """Measure the residual stream at every depth; no model and no torch are needed."""
        from tui_gpt.analysis.stream import stream

        return stream(trace, check_cancelled=check_cancelled)

    def lens(
        self, trace: Trace, position: int, *, check_cancelled: Callable[[], None] = lambda: None
    ) -> Lens:
        """Read the stream of one position through the output head, at every depth.

        Args:
            trace: Live, or a recording made with these weights.
            position: Counted from 0.
            check_cancelled: Called at each depth; what it raises ends the work.
        """
        from tui_gpt.analysis.lens import lens

        return lens(trace, self._loaded(), self.token, position, check_cancelled=check_cancelled)

    def identities(
        self, trace: Trace, *, check_cancelled: Callable[[], None] = lambda: None
    ) -> Identities:
        """Check what must hold between the stages of a trace.

        Args:
            trace: Live, or a recording made with these weights.
            check_cancelled: Called at each stage; what it raises ends the work.
        """
        from tui_gpt.analysis.identities import identities

        return identities(trace, self._loaded(), check_cancelled=check_cancelled)

    def output(self, trace: Trace, position: int) -> Output:
        """Rank the whole vocabulary after one position; no torch is needed.

        Args:
            trace: Live or recorded, with this model's vocabulary.
            position: Counted from 0.
        """
        from tui_gpt.analysis.output import output

        return output(trace, position, self.token)

    def stepper(self, *, top: int = 40) -> Stepper:
        """Take steps of generation; the same stepper each time, with what it kept.

        Args:
            top: Candidates to keep with each step.
        """
        from tui_gpt.analysis.generation import Stepper

        if top not in self._steppers:
            self._steppers[top] = Stepper(self._loaded(), self.token, top=top)
        return self._steppers[top]

    def beside(self, name: str) -> Session:
        """Open another model to compare with; it is kept for the next time.

        Raises:
            UnknownModel: Nothing is there.
            DamagedModel: Its config or vocabulary is not usable.
        """
        if name not in self._beside:
            self._beside[name] = Session.open(name)
        return self._beside[name]

    def parameter(self, name: str) -> NDArray[np.float32]:
        """Give one parameter's values, in the shape of the stage table.

        Raises:
            UnknownStage: The model has no such parameter; the message lists what there is.
        """
        if name not in self._names:
            raise UnknownStage(f"no parameter {name!r}; there are {', '.join(self._names)}")
        values: NDArray[np.float32] = self._loaded().get_parameter(name).numpy()
        return values

    def parameters(self) -> tuple[Parameter, ...]:
        """List the model's parameters in stage order, a shared one once."""
        return tuple(
            parameter
            for stage in stage_table(self.source.config, 1)
            for parameter in stage.parameters
            if not parameter.shared
        )

    @cached_property
    def _names(self) -> dict[str, None]:
        """The names of all parameters, in stage order."""
        return dict.fromkeys(parameter.name for parameter in self.parameters())

    def weights_sha256(self) -> str:
        """Name the weights: the SHA-256 of their file, or of the files' one after the other.

        An untrained model has no file, and its numbers follow from its name and torch's
        version: of these it is the SHA-256.

        Raises:
            DamagedModel: There is no such file, or it may not be read.
        """
        import hashlib  # OpenSSL, which the first frame has no use for

        if self.source.recipe is not None:
            from importlib.metadata import version

            made_of = f"{self.source.recipe.name} torch {version('torch')}"
            return hashlib.sha256(made_of.encode()).hexdigest()
        from tui_gpt.checkpoints.weights import weights_files

        paths = weights_files(self.source)
        digests = [_sha256(path) for path in paths]
        if len(digests) == 1:
            return digests[0].hex()
        return hashlib.sha256(b"".join(digests)).hexdigest()

    def _loaded(self) -> GPT:
        self.load()
        assert self._read is not None
        return self._read.model


def _sha256(path: Path) -> bytes:
    """Read a file to its end.

    Raises:
        DamagedModel: There is none, or it may not be read.
    """
    import hashlib

    try:
        regular_size(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise DamagedModel(f"cannot read {path}: {error.strerror}") from error


def use_threads(count: int) -> None:
    """Compute with this many threads from now on, in the whole process."""
    import torch

    torch.set_num_threads(count)


def bundled_recording(model: str, prompt: str) -> Path | None:
    """Find the recording that ships for a model and prompt: the default prompt's."""
    if model not in BUNDLED_MODELS or prompt != DEFAULT_PROMPT:
        return None
    path = assets() / "recordings" / f"{model}.safetensors"
    return path if path.is_file() else None


def known_models() -> tuple[ModelFacts, ...]:
    """List the models that ship with the program, the default first."""
    return tuple(Session.open(name).facts for name in BUNDLED_MODELS)


def recorded_session(recording: Recording) -> Session | None:
    """Open the model a recording came from, if it is here and has the same weights."""
    try:
        session = Session.open(recording.run.model.name)
        same = session.source.config == recording.run.model.config
        same = same and session.weights_sha256() == recording.weights_sha256
    except TuiGPTError:
        return None
    return session if same else None
