"""What can go wrong, and whose move it is.

    SptError
    ├── InputError           the user's input was wrong: exit code 2
    │   ├── ConfigError      an experiment file or an override
    │   ├── CorpusError      a record of a corpus: source, line, reason
    │   ├── QuestionError    a question set
    │   ├── ModelError       a model or tokenizer that cannot be loaded or used
    │   ├── MissingError     something that must be installed or made first
    │   └── StaleError       an output folder that another configuration made
    ├── WorkError            the work failed: exit code 1
    │   ├── NonFiniteError   a loss or gradient that is not a number
    │   ├── DamagedError     an output that does not match what was written
    │   └── RankError        a process of a distributed run that died
    └── StoppedError         a signal ended the work, and all of it is saved: exit code 75

Every message says the value, what was allowed, and the remedy.
"""

from dataclasses import dataclass


class SptError(Exception):
    """Anything a user, a file or a model can cause; never a mistake of ours (those are `assert`)."""

    exit_code = 1


class InputError(SptError):
    """The input was wrong; running again without a change fails again."""

    exit_code = 2


class ConfigError(InputError):
    """A key or value of an experiment file is wrong."""


@dataclass
class CorpusError(InputError):
    """One record that cannot be used.

    `reason` is one of the names in `spt.corpus.REASONS`; `line` counts from 1 (0: the file as a whole).
    """

    source: str
    line: int
    reason: str
    detail: str
    raw: str = ""

    def __str__(self) -> str:
        """Return `source:line: reason: detail`, the form editors can jump to."""
        return f"{self.source}:{self.line}: {self.reason}: {self.detail}"


class QuestionError(InputError):
    """A question set is wrong."""


class ModelError(InputError):
    """A model or tokenizer cannot be loaded or used as asked."""


class MissingError(InputError):
    """Something has to be installed or made first; the message holds the command."""


class StaleError(InputError):
    """An output folder holds the work of another configuration."""


class WorkError(SptError):
    """The work failed although the input was accepted."""


class NonFiniteError(WorkError):
    """A loss or a gradient is infinite or not a number."""


class DamagedError(WorkError):
    """What lies on disk is not what was written."""


class RankError(WorkError):
    """A process of a distributed run died; `exit_code` is its own, as a shell would give it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StoppedError(SptError):
    """A signal asked to stop; what was done is saved, and the same command goes on from there.

    The code is the system's EX_TEMPFAIL, "try again later": a scheduler can tell it from a failure.
    """

    exit_code = 75
