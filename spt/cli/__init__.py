"""The commands. Each reads a config, calls one stage, and prints its result; they hold no logic of their own.

Exit codes: 0 done, 1 the work failed, 2 the user's input was wrong, 75 a signal stopped training and all of it is
saved, 130 Ctrl-C elsewhere. Results go to standard output, everything else to standard error.
"""

import os
import sys

from rich.console import Console

from spt.cli.end import end
from spt.progress import is_main_process

INTERRUPTED = 130
"""The exit code of Ctrl-C."""


def main() -> None:
    """Run the command line; print an error of ours in one paragraph instead of a traceback."""
    # Their bars and notices would tear ours; set before they are imported.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if any(_has_surrogates(argument) for argument in sys.argv):
        sys.stderr.write("error: the command line holds bytes that are not UTF-8; rename the file or retype the text\n")
        sys.exit(2)
    from spt.cli.app import app

    try:
        app()
    except SystemExit as code:
        if code.code == INTERRUPTED and is_main_process():
            Console(stderr=True).print("interrupted: the same command again goes on where this one was")
        raise
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        end(error)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
