"""How a process ends: what it says, and its exit code. In: what stopped it. Out: nothing, it ends.

Of several ranks the main one speaks at once and ends; the launcher then ends the others, which were waiting and never
repeat it. A rank that fails alone is heard after that moment. Trade-off: it is heard late, so that eight ranks with one
wrong file make one message.
"""

import os
import sys
import time
import traceback
from typing import NoReturn

from rich.console import Console

from spt.errors import SptError, StoppedError
from spt.progress import is_main_process

MOMENT = 2.0
"""Seconds in which a launcher ends the other ranks once one has ended (torch's looks ten times a second)."""

_LOST = ("connection closed by peer", "connection reset by peer", "broken pipe", "remote process exit")
"""What collectives say where another rank went away: gloo, the system, NCCL."""


def end(error: Exception) -> NoReturn:
    """Say what stopped this process and end it: an error of ours or of the system in a paragraph, others in full."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if not is_main_process():
        if isinstance(error, StoppedError):  # every rank raises it, and the main one says so
            sys.exit(error.exit_code)
        time.sleep(MOMENT)
    place = "" if ranks == 1 else f"rank {os.environ.get('RANK', '0')}: "
    if isinstance(error, StoppedError):
        complain(str(error), "stopped: ")
    elif isinstance(error, SptError):
        complain("\n".join([str(error), *getattr(error, "__notes__", [])]), f"{place}error: ")
    elif isinstance(error, OSError):  # a full disk, a folder without rights: the system's word, and the place
        complain((f"{error.filename}: " if error.filename else "") + (error.strerror or str(error)), f"{place}error: ")
    elif ranks > 1 and any(sign in str(error).lower() for sign in _LOST):
        complain("\n".join(["another rank went away", *getattr(error, "__notes__", [])]), place)
    elif ranks == 1:
        raise error
    else:
        complain("".join(traceback.format_exception(error)), place)
    code = error.exit_code if isinstance(error, SptError) else 1
    if ranks == 1 or isinstance(error, StoppedError):
        sys.exit(code)
    # A process group that lost a rank waits for it, or aborts, when the interpreter takes it down.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def complain(message: str, prefix: str = "error: ") -> None:
    """Print a message for people, whatever --quiet says."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(prefix, style="bold red", end="")
    console.print(message, markup=False)
