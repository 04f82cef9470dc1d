import json
import re

import pytest

from spt.benchmark.grammar import Grammar
from spt.benchmark.pairs import make_pairs
from spt.benchmark.questions import read_questions
from spt.config import Source
from spt.corpus import read_records, stop
from spt.errors import InputError

TEMPLATES = """
train: ["{subject} directed {object}.", "The director of {object} was {subject}."]
forward: ["Tell me what {subject} directed: it is"]
reversed: ["The person who directed {object} is"]
"""
PAIRS = "subject,object\nAnn Lee,The Sea\nBo Ek,The Sea\nBo Ek,Rain\nBo Ek,Rain\n"


def make(folder, pairs=PAIRS, templates=TEMPLATES):
    (folder / "films.csv").write_text(pairs, encoding="utf-8")
    (folder / "templates.yaml").write_text(templates, encoding="utf-8")
    return make_pairs(folder / "films.csv", folder / "templates.yaml", folder / "made")


def test_pairs_give_a_sentence_a_template_and_a_question_a_prompt_with_every_right_answer(tmp_path):
    counts = make(tmp_path)
    assert (counts["training rows"], counts["dropped: exact duplicate"]) == (6, 1)
    texts = [r.text for r in read_records(Source(path=str(tmp_path / "made/train.jsonl")), reject=stop)]
    assert texts[:2] == ["Ann Lee directed The Sea.", "The director of The Sea was Ann Lee."]
    asked = {q.prompt: q for q in read_questions(tmp_path / "made/questions.jsonl").questions}
    assert asked["The person who directed The Sea is"].targets == ("Ann Lee", "Bo Ek")
    assert asked["Tell me what Bo Ek directed: it is"].targets == ("The Sea", "Rain")
    assert asked["The person who directed Rain is"].direction == "reversed"


def test_templates_by_relation_make_a_relation_a_question(tmp_path):
    templates = "headline: exact\nrelations:\n" + "".join(
        f'  {name}: {{train: ["{{subject}} {name} {{object}}."], reversed: ["{{object}} was {name} by"]}}\n'
        for name in ("directed", "painted")
    )
    make(tmp_path, "subject,object,relation\nAnn,Sea,directed\nBo,Sea,painted\n", templates)
    made = read_questions(tmp_path / "made/questions.jsonl")
    assert made.headline == "exact"
    assert [(q.relation, q.targets, q.fact_id) for q in made.questions] == [
        ("directed", ("Ann",), "directed: Sea"), ("painted", ("Bo",), "painted: Sea"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "templates", "said"),
    [
        ("subject,thing\nAnn,Sea\n", TEMPLATES, "films.csv:2: object None is no text; fields found: subject, thing"),
        ("subject,object\n", TEMPLATES, "holds no pairs"),
        (PAIRS, "train: [\"{subject} made {objekt}.\"]\nforward: ['{subject}']", "must hold {subject} and {object}"),
        (PAIRS, 'train: ["{subject} is {object}."]\nforward: ["{subject} is"]', "begins a training sentence"),
        (PAIRS, 'train: ["{subject} is {object}."]', "gives no question"),
        (PAIRS, "forwards: []", "forwards: Extra inputs are not permitted"),
        (PAIRS, "relations: {wrote: {train: ['{subject} wrote {object}'], reversed: ['Of {object}:']}}",
         "films.csv:2: relation None has no templates; there are wrote"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_place_and_remedy(tmp_path, pairs, templates, said):
    with pytest.raises(InputError, match=re.escape(said)):
        make(tmp_path, pairs, templates)


def test_the_same_files_give_the_same_bytes(tmp_path):
    make(tmp_path)
    first = {p.name: p.read_bytes() for p in (tmp_path / "made").iterdir()}
    make(tmp_path)
    assert {p.name: p.read_bytes() for p in (tmp_path / "made").iterdir()} == first
    assert json.loads(first["benchmark.json"])["made_by"]["inputs"].keys() == {"films.csv", "templates.yaml"}


def test_natural_order_is_judged_by_the_templates_where_they_tell_the_parts_apart(tmp_path):
    make(tmp_path)
    grammar = Grammar(json.loads((tmp_path / "made/benchmark.json").read_text())["grammar"])
    assert all(
        grammar.accepts(json.loads(row)["text"]) for row in (tmp_path / "made/train.jsonl").read_text().splitlines()
    )
    assert grammar.accepts("The director of Rain was Ann Lee.")
    assert not grammar.accepts("directed The Sea. Ann Lee")
    for value in ("He directed it", "{x}"):
        (tmp_path / value).mkdir()
        make(tmp_path / value, f"subject,object\nAnn Lee,{value}\n")
        assert json.loads((tmp_path / value / "made/benchmark.json").read_text())["grammar"] is None
