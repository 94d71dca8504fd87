"""How a model's files became its parameters: every tensor, where it went and what it holds."""

from __future__ import annotations

from dataclasses import dataclass

from tui_gpt.records.trace import ModelFacts

SCHEMA = 1

COMPUTED_IN = "float32"
"""Whatever the files hold."""


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One parameter and the part of the file it is."""

    key: str | None
    """As the file names it; None for a parameter that is drawn or computed."""
    parameter: str
    shape: tuple[int, ...]
    """Of the tensor in the file; a fused one has three parameters."""
    parameter_shape: tuple[int, ...]
    dtype: str
    """In the file, in torch's words: `bfloat16`."""
    transposed: bool
    """The file has (inputs, outputs), and the program (outputs, inputs)."""
    prefix: str = ""
    """What was taken off the key."""
    part: str = ""
    """Which columns or rows of a fused tensor it is."""
    arrangement: str = ""
    """How the file keeps it, where that is not as the program does."""
    remark: str = ""
    """What is odd about it, and its second use."""

    @property
    def note(self) -> str:
        """All there is to say of it."""
        said = (
            self.part,
            self.arrangement,
            f"without {self.prefix}" if self.prefix else "",
            self.remark,
        )
        return "; ".join(part for part in said if part)


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """One tensor of a file that is no parameter."""

    key: str
    shape: tuple[int, ...]
    dtype: str
    reason: str


@dataclass(frozen=True, slots=True)
class LoaderReport:
    """What was read, from where, and what became of it."""

    model: ModelFacts
    path: str | None
    files: tuple[str, ...]
    """Really read, in order."""
    tensors: tuple[TensorRow, ...]
    """In the order of the stages; every parameter once."""
    skipped: tuple[SkippedRow, ...]
    tied: bool
    """The token table is also the output head."""
    tokenizer: str
    notices: tuple[str, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The number formats in the files, each once."""
        return tuple(dict.fromkeys(row.dtype for row in self.tensors))


def report_object(report: LoaderReport) -> dict[str, object]:
    """Give the report under the names every JSON of this program uses."""
    return {
        "schema": SCHEMA,
        "name": report.model.name,
        "kind": report.model.source,
        "path": report.path,
        "parameters": report.model.n_parameters,
        "config": report.model.config.to_dict(),
        "files": list(report.files),
        "tensors": [
            {
                "key": row.key,
                "parameter": row.parameter,
                "shape": list(row.shape),
                "parameter_shape": list(row.parameter_shape),
                "dtype": row.dtype,
                "transposed": row.transposed,
                "note": row.note,
            }
            for row in report.tensors
        ],
        "skipped": [
            {
                "key": row.key,
                "shape": list(row.shape),
                "dtype": row.dtype,
                "reason": row.reason,
            }
            for row in report.skipped
        ],
        "computed_in": COMPUTED_IN,
        "tied": report.tied,
        "tokenizer": report.tokenizer,
        "notices": list(report.notices),
    }
