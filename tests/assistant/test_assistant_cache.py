"""Nothing is asked twice: not in the next run, not after a kill, not by a neighbour."""

import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from spt.assistant import Item
from spt.assistant.cache import ReplyCache
from spt.assistant.item import Reply
from spt.errors import DamagedError, InputError

RUN = """
import re, sys, time
from spt.assistant import Item, UnitAssistant
from spt.assistant.decode import MODES
from spt.config import Assistant
plain = MODES["constrained"]
MODES["constrained"] = lambda *given: (time.sleep(0.2), plain(*given))[1]
settings = Assistant.model_validate_json(sys.argv[1])
texts = [f"Person {number} wrote book {number * number}." for number in range(24)]
items = [Item(text, tuple(match.start() for match in re.finditer(" ", text))) for text in texts]
UnitAssistant(settings).cut(items)
"""


def item(text):
    return Item(text, tuple(match.start() for match in re.finditer(" ", text)))


ITEMS = [item(f"Person {number} wrote book {number * number}.") for number in range(24)]


def test_a_second_run_asks_nothing_and_cuts_the_same(make):
    first, second = make("constrained"), make("constrained")
    cuts = first.cut([*ITEMS, *ITEMS])
    assert first.counts() == {"requests": 24, "cache_hits": 0}
    assert second.cut(ITEMS) == cuts[:24] == cuts[24:]
    assert second.counts() == {"requests": 0, "cache_hits": 24}
    assert "model" not in vars(second.backend)  # not even loaded


def test_another_prompt_mode_model_or_text_is_asked_anew(make, tmp_path, prompt_file):
    make("constrained").cut(ITEMS[:3])
    (tmp_path / "other.yaml").write_text(prompt_file.read_text().replace("Cut the", "Please cut the"))
    for other in (make("generate"), make("constrained", prompt=str(tmp_path / "other.yaml")),
                  make("constrained", dtype="bfloat16")):  # fmt: skip
        other.cut(ITEMS[:3])
        assert other.counts()["requests"] == 3
    again = make("constrained")
    again.cut([item("Person 0 wrote book 1.")])
    assert again.counts()["requests"] == 1


def test_a_killed_run_asks_only_for_what_is_missing_and_cuts_the_same(make, tmp_path):
    whole = make("constrained", batch_size=4, cache=str(tmp_path / "whole")).cut(ITEMS)
    settings = make("constrained", batch_size=4).settings
    command = [sys.executable, "-c", RUN, settings.model_dump_json()]
    cache = ReplyCache(settings.cache)
    with subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}) as run:
        while run.poll() is None and kept(cache) < 8:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    before = kept(cache)
    assert 8 <= before < 24
    again = make("constrained", batch_size=4)
    assert again.cut(ITEMS) == whole
    assert again.counts() == {"requests": 24 - before, "cache_hits": before}


def kept(cache):
    if not cache.path.exists():
        return 0
    with sqlite3.connect(cache.path, timeout=60) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'replies'").fetchone()[0]
        count = connection.execute("SELECT count(*) FROM replies").fetchone()[0] if tables else 0
    connection.close()
    return count


def _write(folder, name):
    cache = ReplyCache(folder)
    for number in range(40):
        cache.put({f"{name}-{number}": Reply(text=name), f"both-{number}": Reply(cuts=(number,))})


def test_two_processes_share_a_cache_from_its_first_moment(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path / "shared"), name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    found = ReplyCache(str(tmp_path / "shared")).get([f"{name}-{n}" for name in ("a", "b", "both") for n in range(40)])
    assert len(found) == 120
    assert found["both-7"] == Reply(cuts=(7,))


def test_replies_come_back_as_they_were_and_passing_failures_are_not_kept(tmp_path):
    cache = ReplyCache(str(tmp_path))
    replies = {
        "text": Reply(text="a \ud800 | b"), "cuts": Reply(cuts=(3, 8)), "none": Reply(cuts=()),
        "scores": Reply(logprobs=(-0.5, -12.25)), "failure": Reply(failure="length"),
    }  # fmt: skip
    cache.put({**replies, "passing": Reply(failure="timeout", kept=False)})
    assert cache.get([*replies, "passing", *map(str, range(2000))]) == replies


def test_a_damaged_or_unwritable_cache_is_named_with_its_remedy(tmp_path):
    (tmp_path / "assistant.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(DamagedError, match=r"assistant\.sqlite.*delete it, or set segment\.assistant\.cache"):
        ReplyCache(str(tmp_path)).get(["x"])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"set segment\.assistant\.cache"):
        ReplyCache(str(tmp_path / "file")).get(["x"])
