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
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    stopped = isinstance(error, StoppedError)
    if not is_main_process() and not stopped:
        time.sleep(MOMENT)
    said = _paragraph(error, alone=alone)
    if said is None and alone:
        raise error
    if is_main_process() or not stopped:  # every rank is stopped, and the main one says so
        place = "" if alone or stopped else f"rank {os.environ.get('RANK', '0')}: "
        complain("".join(traceback.format_exception(error)) if said is None else said, place)
    code = error.exit_code if isinstance(error, SptError) else 1
    if alone or stopped:
        sys.exit(code)
    # A process group that lost a rank waits for it, or aborts, when the interpreter takes it down.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _paragraph(error: Exception, *, alone: bool) -> str | None:
    """Return what to say of an error that is no mistake of ours, None for the others."""
    notes = getattr(error, "__notes__", [])
    if isinstance(error, StoppedError):
        return str(error)
    if isinstance(error, SptError):
        return "\n".join([f"error: {error}", *notes])
    if isinstance(error, OSError):  # a full disk, a folder without rights: the system's word, and the place
        where = f"{error.filename}: " if error.filename else ""
        return f"error: {where}{error.strerror or error}"
    if not alone and any(sign in str(error).lower() for sign in _LOST):
        return "\n".join(["another rank went away", *notes])
    return None


def complain(message: str, place: str = "") -> None:
    """Print a message for people, whatever --quiet says; `place` stands before it."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    prefix = "error: " if message.startswith("error: ") else ""
    console.print(place + prefix, style="bold red", end="")
    console.print(message.removeprefix(prefix), markup=False)
