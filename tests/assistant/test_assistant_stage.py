"""The data stage with an assistant: what it was asked and what fell back is told; a killed run sends no reply's
request twice."""

import time

from experiment import kill_after, manifest, rows, write_experiment
from misbehaving import Script, copy, says, serving, status

from spt.artifact import read_json
from spt.config import read_config
from spt.preprocess import preprocess


def slowly(handler):
    time.sleep(0.05)
    copy(handler)


def experiment(folder, url, **assistant):
    values = {"backend": "openai", "model": "m", "base_url": url, "mode": "generate", "concurrency": 2}
    assistant = {**values, "cache": str(folder / "cache"), **assistant}
    return write_experiment(folder, segment={"segmenter": "assistant", "assistant": assistant})


def test_a_killed_run_sends_only_what_is_missing_and_ends_with_the_same_bytes(tmp_path):
    texts = {row["text"] for row in rows()}
    whole, killed = Script(), Script()
    with serving(whole) as url:
        preprocess(read_config(experiment(tmp_path / "whole", url)))
    assert {request["messages"][-1]["content"] for request in whole.requests} == texts
    killed.behaviours = {text: [slowly] for text in texts}
    with serving(killed) as url:
        path = experiment(tmp_path / "killed", url)
        assert kill_after(path, lambda: len(killed.requests) >= 15, "preprocess", path)
        assert len(killed.requests) < len(texts)
        preprocess(read_config(path))
        # What was under way when the run was killed is asked again, and no more.
        assert len(texts) <= len(killed.requests) <= len(texts) + 2 * 2
        before = len(killed.requests)
        preprocess(read_config(path), force=True)
        assert len(killed.requests) == before
        timings = read_json(tmp_path / "killed/run/segmented/timings.json")
        assert (timings["requests"], timings["cache_hits"]) == (0, len(texts))
    parts = [(tmp_path / name / "run/segmented/part-00000.parquet").read_bytes() for name in ("whole", "killed")]
    assert parts[0] == parts[1]


def test_fallbacks_are_in_the_manifest_by_reason_and_requests_in_the_timings(tmp_path):
    texts = sorted({row["text"] for row in rows()})
    script = Script()
    script.behaviours = {texts[0]: [says("Note: no.")], texts[1]: [status(400)], texts[2]: [status(500), copy]}
    with serving(script) as url:
        preprocess(read_config(experiment(tmp_path, url)))
    counts = manifest(tmp_path / "run", "segmented")["counts"]
    assert counts["fallbacks"] == {"changed": 1, "refused": 1}
    assert counts["segmenters"] == {"assistant": len(rows()) - 2, "spacy": 2}
    timings = read_json(tmp_path / "run/segmented/timings.json")
    assert (timings["requests"], timings["cache_hits"]) == (len(texts) + 1, 0)
