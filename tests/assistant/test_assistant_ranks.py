"""Several ranks ask one assistant: each on a device of its own, all with one cache."""

import os
import subprocess
import sys
import threading

import torch
from experiment import manifest, rows, write_experiment
from misbehaving import Script, says, serving, status

from spt.artifact import read_json
from spt.assistant.cache import ReplyCache
from spt.assistant.item import Reply
from spt.assistant.local import _own_device
from spt.config import read_config
from spt.preprocess import preprocess

RANK = """
import sys
from pathlib import Path
from spt.config import read_config
from spt.preprocess import preprocess
preprocess(read_config(Path(sys.argv[1])))
"""
HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO replies VALUES ('theirs', '{\\"text\\": \\"a\\"}')")
print("held", flush=True)
time.sleep(0.7)
connection.execute("COMMIT")
"""


def on_ranks(world, path):
    command = [sys.executable, "-c", RANK, str(path)]
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)} for rank in range(world)]
    processes = [subprocess.Popen(command, env=os.environ | place) for place in places]
    return [process.wait(120) for process in processes]


def test_two_ranks_ask_what_one_asks_and_count_the_same_fallbacks(tmp_path):
    texts = sorted({row["text"] for row in rows()})
    script = Script()
    script.behaviours = {texts[0]: [says("Note: no.")], texts[1]: [status(400)]}

    def experiment(name, url):
        assistant = {"backend": "openai", "model": "m", "base_url": url, "mode": "generate"}
        assistant |= {"cache": str(tmp_path / name / "cache")}
        data = {"shard_size": 7}
        segment = {"segmenter": "assistant", "assistant": assistant}
        return write_experiment(tmp_path / name, data=data, segment=segment)

    with serving(script) as url:
        preprocess(read_config(experiment("one", url)))
        asked = len(script.requests)
        assert on_ranks(2, experiment("two", url)) == [0, 0]
        assert len(script.requests) == 2 * asked
        timings = read_json(tmp_path / "two/run/segmented/timings.json")
        assert (timings["requests"], timings["cache_hits"]) == (asked, 0)
    one, two = (manifest(tmp_path / name / "run", "segmented") for name in ("one", "two"))
    assert one["counts"]["fallbacks"] == {"changed": 1, "refused": 1}
    assert (one["counts"], one["parts"]) == (two["counts"], two["parts"])


def test_a_writer_waits_for_another_processs_transaction_and_readers_do_not(tmp_path):
    cache = ReplyCache(str(tmp_path))
    cache.put({"before": Reply(text="b")})
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(cache.path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        writer = threading.Thread(target=cache.put, args=({"ours": Reply(text="o")},))
        writer.start()
        assert set(cache.get(["before", "theirs", "ours"])) == {"before"}
        assert writer.is_alive()
        writer.join(60)
        assert holder.wait(60) == 0
    assert set(cache.get(["before", "theirs", "ours"])) == {"before", "theirs", "ours"}


def test_ranks_of_one_machine_are_spread_over_its_devices(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    found = []
    for rank in range(3):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        found.append(_own_device())
    assert found == [torch.device("cuda", 0), torch.device("cuda", 1), torch.device("cuda", 0)]
