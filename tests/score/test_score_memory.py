"""Memory does not grow with the questions: whatever is kept of each lies on disk."""

import json
import tracemalloc

import pytest
from experiment import write_experiment

import spt.score.questions
from spt.assistant.item import Reply
from spt.benchmark import question_table, read_questions
from spt.config import Evaluate, Server, read_config
from spt.progress import configure
from spt.records import Record
from spt.report.load import Run, read_scores
from spt.report.pairs import compare_pairs
from spt.score import leakage
from spt.score import server as asking
from spt.score.guards import echo
from spt.score.lm_eval import export_lm_eval
from spt.score.questions import chunk_size, score_chunks, spread
from spt.score.served import split_answered
from spt.score.stream import ScoreFile
from spt.segment.word import WordSegmenter
from spt.statistics import fact_rows, floor, summarise

SETTINGS = Evaluate(metrics=("exact", "logprob"), floor_targets=1)
SMALL, LARGE = 600, 2400
BYTES = 16
"""What a question more may take: some masks of a byte each, and noise. No object of Python is as small."""


class Instant:
    """A model that costs nothing and copies its prompt."""

    has_log_probabilities = True

    def generate(self, prompts, *, max_new_tokens):
        return list(prompts)

    def log_probabilities(self, groups):
        return [[(-1.5, 3)] * len(texts) for _, texts in groups]


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch):
    configure(enabled=False)  # a line of a bar, on a busy machine, would load parts of rich
    monkeypatch.setattr(spt.score.questions, "CHUNK", 32)
    for module, name in ((question_table, "PAGE"), (fact_rows, "BLOCK"), (leakage, "WINDOW"), (floor, "_REMEMBERED")):
        monkeypatch.setattr(module, name, 32)


def write_questions(path, count, facts):
    """Write questions about so many facts, with 97 answers, so that no cache of texts grows."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            fact = number // 2 % facts
            row = {"fact_id": f"f{fact}", "direction": ("forward", "reversed")[number % 2]}
            row |= {"prompt": f"Who is {fact}?", "targets": [f"the {fact % 97}th of all"], "relation": f"r{number % 3}"}
            file.write(json.dumps(row) + "\n")
    return path


def grown(work):
    """Return by how many bytes a question the peak of memory is higher for LARGE than for SMALL."""
    peaks = {}
    work(LARGE)  # fills caches, and Python's own lists of objects to use again, which a collection would empty
    for count in (SMALL, LARGE):
        tracemalloc.start()
        work(count)
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return (peaks[LARGE] - peaks[SMALL]) / (LARGE - SMALL)


def score(path, questions):
    """Return the file of scores, in which all are."""
    file = ScoreFile(path, SETTINGS.metrics)
    for scores in score_chunks(Instant(), questions, SETTINGS):
        file.append(scores)
    return file


def test_questions_are_read_chosen_scored_and_written_in_the_same_memory(tmp_path):
    def work(count):
        questions = read_questions(write_questions(tmp_path / "questions.jsonl", count, count // 2)).questions
        (tmp_path / "scores.jsonl").unlink(missing_ok=True)
        file = score(tmp_path / "scores.jsonl", questions)
        assert file.resume(questions, chunk_size(SETTINGS, 1)) == count
        assert len(spread(questions, count // 2)) == count // 2

    assert grown(work) < BYTES


def scored(folder):
    """Return the scores of a few and of many questions about fifty facts, by how many."""
    files = {}
    for count in (SMALL, LARGE):
        questions = read_questions(write_questions(folder / "questions.jsonl", count, 50)).questions
        (folder / f"{count}/evaluate").mkdir(parents=True)
        files[count] = score(folder / f"{count}/evaluate/scores.jsonl", questions)
    return files


def test_scores_of_as_many_facts_are_summarised_and_guarded_in_the_same_memory(tmp_path):
    files = scored(tmp_path)

    def work(count):
        file = files[count]
        assert summarise(file.read(), headline="exact", seed=0)["forward"]["n_questions"] == count // 2
        assert echo(file.read(), seed=0)["n"] == count
        assert sum(1 for _ in read_scores(file.path)) == count

    assert grown(work) < BYTES


def test_runs_over_as_many_facts_are_compared_in_the_same_memory(tmp_path):
    files = scored(tmp_path)

    def work(count):
        folder = files[count].path.parents[1]
        run = Run("a", folder, {"headline": "exact"}, count, "", log=(), train={}, seconds=None, config="")
        assert [(pair.direction, pair.gap.n_facts) for pair in compare_pairs([run, run])] == [
            ("forward", 50), ("reversed", 50),
        ]  # fmt: skip

    assert grown(work) < BYTES


def test_a_server_is_asked_and_what_it_answered_chosen_in_the_same_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "_CHUNK", 32)
    settings = SETTINGS.model_copy(update={"server": Server(model="m", base_url="http://localhost:1/v1")})
    model = asking.ServerAsked(settings, tmp_path)
    model.no_log_probabilities = None
    answer, failure = Reply(text="x", logprobs=(-1.0, 1)), Reply(failure="refused", kept=False)
    fails = ("Who is 9?", "Who is 299?")
    model._replies = lambda requests: {one: failure if one.prompt in fails else answer for one in requests}

    def work(count):
        questions = read_questions(write_questions(tmp_path / "questions.jsonl", count, count // 2)).questions
        kept, lost = split_answered(model, questions, settings, 0)
        assert (len(kept), len(lost)) == (count - 4, 4)

    assert grown(work) < 2 * BYTES  # two tables of questions: twice the noise, and still less than any text


def test_tasks_are_exported_in_the_same_memory(tmp_path):
    config = read_config(write_experiment(tmp_path))

    def work(count):
        write_questions(tmp_path / "questions.jsonl", count, count // 2)
        assert export_lm_eval(config, tmp_path / "tasks")["spt_reversed_mc"] == count // 2

    assert grown(work) < BYTES


def test_leaks_are_found_and_counted_in_the_same_memory(tmp_path):
    texts = WordSegmenter().segment([Record(str(n), f"Who is {n}? The {n % 97}th of all.", "x", n) for n in range(40)])

    def work(count):
        asked = read_questions(write_questions(tmp_path / "questions.jsonl", count, count // 2)).questions
        found = leakage.leakage(leakage.find_leaks(texts, asked), asked)
        assert (found["forward"]["n"], found["forward"]["count"]) == (count // 2, 40)

    assert grown(work) < BYTES
