import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st
from invented_runs import make_run, make_scores

from spt.report import Run, answers, load_run
from spt.report.answers import answers_json, escape_json
from spt.report.figures import visible
from spt.report.page import page
from spt.report.pairs import compare_pairs
from spt.report.plots import curves_svg


@pytest.fixture(scope="module")
def shown(runs: list[Run], hostile: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    together = [*runs, hostile]
    return visible(page(together, compare_pairs(together), tmp_path_factory.mktemp("report")))


def test_page_reaches_for_nothing_outside_itself(shown: str) -> None:
    found = Page(shown)
    assert {"img", "iframe", "base", "object", "embed", "form action"}.isdisjoint(found.tags)
    links = [value for name, value in found.attributes if name in ("src", "href", "xlink:href", "action", "data")]
    assert all(value and not re.match(r"[a-z]+:(?!,)|//", value) for value in links)
    assert "@import" not in shown
    assert re.findall(r"url\((?!#)", shown) == []


def test_only_the_script_of_the_page_may_run(shown: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', shown)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', shown, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_links_lead_from_the_report_to_the_files_of_each_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs/50% sure #1", make_scores(1.0, 0.0, facts=2))
    found = Page(page([load_run(folder)], [], tmp_path / "reports"))
    links = [str(value) for name, value in found.attributes if name == "href" and str(value).startswith("..")]
    assert "../runs/50%25%20sure%20%231/config.yaml" in links
    assert "../runs/50%25%20sure%20%231/train/manifest.json" in links
    assert all((tmp_path / "reports" / unquote(link)).resolve().exists() for link in links)


def test_page_has_no_id_twice_and_every_reference_has_its_id(shown: str) -> None:
    found = Page(shown)
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    inner = {str(value) for name, value in found.attributes if name in ("xlink:href", "href")}
    references = {value.removeprefix("#") for value in inner if value.startswith("#")}
    references |= {str(value) for name, value in found.attributes if name == "aria-labelledby"}
    assert references <= set(ids)


def test_hostile_names_are_text_in_the_source(shown: str) -> None:
    found = Page(shown)
    assert found.tags.count("script") == 2
    assert not re.search("[\x00\u202e\ud800]", shown)
    assert "49" not in {cell.strip() for cell in found.cells}
    shown.encode()


@given(st.text(st.characters(exclude_categories=[])))
def test_block_of_answers_is_json_that_cannot_end_its_element(text: str) -> None:
    block = escape_json({"text": visible(text)})
    assert not re.search("[<>&\u2028\u2029\x00-\x1f]", block)
    assert json.loads(block) == {"text": visible(text)}
    block.encode()


def test_every_answer_stands_in_the_block_and_shared_questions_once(runs: list[Run]) -> None:
    block = json.loads(answers_json(runs[:2], ["a", "b"]))
    assert (len(block["questions"]), len(block["answers"])) == (180, 360)
    number, question, result, prediction, logprob, right_by = block["answers"][200]
    score = list(runs[1].scores())[20]
    assert (number, block["questions"][question][0]) == (1, score.question.id)
    assert (prediction, logprob) == (score.prediction, round(score.logprob, 2))
    assert result == (2 if score.metrics["exact"] else 1 if score.metrics["contains"] else 0)
    assert right_by.split(", ")[0] == ("exact" if score.metrics["exact"] else right_by)


def test_every_table_has_a_header_for_each_column(shown: str) -> None:
    for body in re.findall(r"<table.*?</table>", shown, flags=re.DOTALL):
        head, *rows = re.findall(r"<tr.*?</tr>", body, flags=re.DOTALL)
        columns = head.count('<th scope="col"')
        assert columns > 0
        spanned = 0
        for row in rows:
            spanned = int(span[1]) if (span := re.search(r'rowspan="(\d+)"', row)) else max(spanned - 1, 0)
            cells = row.count("<td") + row.count("<th ")
            assert cells + (spanned > 0 and "rowspan" not in row) == columns


def test_long_question_list_is_cut_evenly_and_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_run(make_run(tmp_path, make_scores(1.0, 0.0, facts=100), trained=False))
    monkeypatch.setattr(answers, "ROWS", 400)
    assert "400 of 600 questions, evenly spaced" in page([run], [], tmp_path)
    assert "200 of 600 questions, evenly spaced" in page([run] * 2, [], tmp_path)
    assert re.search(r'search and filters see no others.*<a href="evaluate/scores.jsonl">', page([run], [], tmp_path))
    monkeypatch.setattr(answers, "ROWS", 600)
    assert "see no others" not in page([run], [], tmp_path)
    monkeypatch.setattr(answers, "ROWS", 400)
    places = [int(question[0].split("-")[1]) for question in json.loads(answers_json([run], ["a"]))["questions"]]
    assert len(places) == 400
    assert {places.count(fact) for fact in range(100)} == {4}  # of six questions of a fact


def test_step_logged_twice_by_a_resumed_run_is_drawn_once(runs: list[Run]) -> None:
    resumed = replace(runs[1], log=({**runs[1].log[5], "loss": 99.0}, *runs[1].log))
    assert curves_svg(resumed, "x") == curves_svg(runs[1], "x")
