import json
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_runs import as_row, make_run, make_scores, write

from spt.artifact import dump_json
from spt.errors import DamagedError, MissingError
from spt.report import load_run, table, write_report
from spt.report.guards import throughput
from spt.report.load import read_scores
from spt.report.markdown import markdown
from spt.report.page import page


def test_unfinished_evaluation_names_the_command_that_finishes_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", make_scores(1.0, 0.0, facts=2))
    (folder / "evaluate/key.json").write_text("{}")
    with pytest.raises(MissingError, match=r"spt evaluate .*config\.yaml"):
        load_run(folder)
    (folder / "evaluate/manifest.json").write_text("{}")
    assert load_run(folder).name == "spt"
    (folder / "evaluate/scores.jsonl").unlink()
    with pytest.raises(MissingError, match="spt evaluate"):
        load_run(folder)
    with pytest.raises(MissingError, match="no such folder"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("evaluate/summary.json", '{"name": ', "summary.json"),
        ("evaluate/summary.json", '{"name": "x"}', "lacks forward, headline"),
        ("evaluate/scores.jsonl", '{"id": 1}', "scores.jsonl:1: lacks direction, fact_id"),
        ("evaluate/scores.jsonl", '\n{"id"', "scores.jsonl:2: cannot be read as JSON"),
        ("train/metrics.jsonl", "[1]", "metrics.jsonl:1"),
        ("train/metrics.jsonl", b"\xff\xfe", "metrics.jsonl:1"),
        ("train/metrics.jsonl", '{"step": "one"}', r'metrics.jsonl:1: step is "one": input should be'),
        ("train/metrics.jsonl", '{"step": 1, "evaluate": [0.5]}', "evaluate is .*delete .*train"),
        ("train/manifest.json", '{"steps": "many"}', 'steps is "many"'),
        ("train/timings.json", '{"seconds": {}}', "seconds is {}"),
        ("evaluate/summary.json", "[" * 100_000, "summary.json: cannot be read as JSON"),
        ("evaluate/manifest.json", '{"questions": 11}', "12 rows where 11 were written"),
    ],
)
def test_damaged_file_is_named_with_its_line(tmp_path: Path, file: str, line: str | bytes, message: str) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2))
    (folder / file).write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(DamagedError, match=message):
        load_run(folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("headline", 7, "headline is 7"),
        ("forward", {"n_questions": 2, "n_facts": 1, "exact": 0.5}, "forward.exact is 0.5"),
        ("forward", {"n_questions": "2", "n_facts": 1}, "forward.n_questions"),
        ("forward", {"n_questions": 2, "n_facts": 1, "exact": {"value": float("nan")}}, "forward.exact.value is NaN"),
        ("gap", [], "gap is "),
        ("relations", {"both": {"forward": [1]}}, "relations.both.forward"),
        ("guards", {"echo": {"value": "high"}}, 'guards.echo.value is "high"'),
        ("fluency", {"natural_order": 0.5}, "fluency.natural_order"),
        ("perplexity", {"after": 3.0}, "perplexity"),
        ("match_rules", ["exact"], "match_rules"),
    ],
)
def test_value_of_another_type_is_named_with_the_command_that_makes_it_again(
    tmp_path: Path, key: str, value: object, message: str
) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2))
    path = folder / "evaluate/summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(DamagedError, match=rf"summary\.json: {message}.*spt evaluate .* --force"):
        load_run(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("targets", "one"), ("direction", "sideways"), ("exact", "yes"), ("exact_floor", [0]), ("prediction", None),
        ("logprob", float("inf")), ("fact_id", 3), ("distractor_logprobs", [None]),
    ],
)  # fmt: skip
def test_damaged_score_is_named_with_its_line(tmp_path: Path, key: str, value: object) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2))
    path = folder / "evaluate/scores.jsonl"
    lines = path.read_text().splitlines()
    lines[3] = json.dumps(json.loads(lines[3]) | {key: value})
    path.write_text("\n".join(lines))
    with pytest.raises(DamagedError, match=rf"scores\.jsonl:4: {key}.*spt evaluate .* --force"):
        load_run(folder)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to each value in JSON."""
    yield above
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from places(part, (*above, name))


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    changed = copy(value)
    changed[place[0]] = put(value[place[0]], place[1:], new)
    return changed


FILES = ("evaluate/summary.json", "evaluate/scores.jsonl", "train/manifest.json", "train/metrics.jsonl")
WRONG = (None, True, 7, 1e308, 10**400, "x", [], [1], {}, {"value": None}, {"value": "x"})


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_run(tmp_path_factory.mktemp("damaged"), make_scores(1.0, 0.5, facts=1), steps=20)
    path = folder / "evaluate/summary.json"
    summary = json.loads(path.read_text()) | {"unanswered": {"refused": 1}, "no_log_probabilities": "none"}
    path.write_text(json.dumps(summary))
    return folder


@settings(max_examples=100, deadline=None, derandomize=True)
@given(file=st.sampled_from(FILES), value=st.sampled_from(WRONG), data=st.data())
def test_any_value_of_another_type_is_an_error_of_ours_or_can_be_shown(
    damaged: Path, file: str, value: Any, data: st.DataObject
) -> None:
    path = damaged / file
    whole = path.read_text()
    first, *rest = whole.splitlines()
    line = json.loads(first)
    place = data.draw(st.sampled_from(list(places(line))))
    path.write_text("\n".join([json.dumps(put(line, place, value)), *rest]))
    try:
        run = load_run(damaged)
    except DamagedError:
        return
    finally:
        path.write_text(whole)
    table([run])
    markdown([run])
    with pytest.MonkeyPatch.context() as patch:  # its rows were mended
        patch.setattr("spt.report.page.answers_json", lambda runs, names: "{}")
        page([run], [], damaged)


def test_question_that_stands_twice_is_refused(tmp_path: Path) -> None:
    scores = make_scores(1.0, 0.0, facts=2)
    with pytest.raises(DamagedError, match="'name_first-0-forward' stands there twice"):
        load_run(make_run(tmp_path, [*scores, scores[0]]))


def test_run_of_the_format_before_guards_loads(tmp_path: Path) -> None:
    folder = make_run(tmp_path, make_scores(1.0, 0.0, facts=2), guards=False)
    write(folder / "train/metrics.jsonl", {"step": 1, "loss": 2.0, "target_tokens": 9, "tokens_per_second": 197.4})
    run = load_run(folder)
    assert run.guards == {}
    assert "197 tokens/s" in throughput(run)
    write_report([run], tmp_path)


def test_questions_have_the_same_digest_in_any_order(tmp_path: Path) -> None:
    scores = make_scores(1.0, 0.0, facts=2)
    moved = load_run(make_run(tmp_path / "moved", scores[::-1]))
    changed = [replace(scores[0], question=replace(scores[0].question, prompt="Who?")), *scores[1:]]
    assert moved.questions == load_run(make_run(tmp_path / "run", scores)).questions
    assert moved.questions != load_run(make_run(tmp_path / "changed", changed)).questions


def test_scores_read_back_are_those_that_were_written(tmp_path: Path) -> None:
    from spt.score.stream import score_row

    scores = make_scores(0.5, 0.5, facts=3)
    scores[0] = replace(scores[0], distractor_logprobs=(-1.0, -2.5), metrics={"exact": 1.0, "choice": 0.0})
    scores[1] = replace(scores[1], question=replace(scores[1].question, distractors=("a", "b"), relation=None))
    write(tmp_path / "scores.jsonl", *(score_row(score) for score in scores))
    found = list(read_scores(tmp_path / "scores.jsonl"))
    without = [
        replace(score, metrics={name: value for name, value in score.metrics.items() if name != "logprob"})
        for score in found
    ]  # the log-probability stands in the row whether or not it is among the metrics
    assert without == scores


def test_score_without_a_log_probability_has_none(tmp_path: Path) -> None:
    row = {"id": "a", "fact_id": "a", "direction": "forward", "prompt": "p", "targets": ["t"], "prediction": "x"}
    write(tmp_path / "scores.jsonl", row | {"exact": 0.0, "logprob": None, "choice": None})
    (score,) = read_scores(tmp_path / "scores.jsonl")
    assert isnan(score.logprob)
    assert score.metrics == {"exact": 0.0}


def test_unescaped_line_separators_do_not_split_a_row(tmp_path: Path) -> None:
    scores = make_scores(1.0, 0.0, facts=1)
    folder = make_run(tmp_path, scores)
    rows = [dump_json(as_row(replace(score, prediction="\u2028\x85")), indent=None) for score in scores]
    (folder / "evaluate/scores.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert {score.prediction for score in load_run(folder).scores()} == {"\u2028\x85"}


def test_a_comparison_is_no_run_and_says_where_its_runs_are(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text("{}")
    with pytest.raises(MissingError, match=r"is a comparison, whose report is .*report\.html; give some of its cells"):
        load_run(tmp_path)
