"""What the training text gives away is found, whatever its case and punctuation, and nothing else is."""

import json
from itertools import pairwise
from pathlib import Path

from counting import lines_run
from hypothesis import given
from hypothesis import strategies as st

from spt.benchmark.questions import read_questions
from spt.records import Question, Record
from spt.score.leakage import find_leaks, leakage
from spt.score.phrases import Phrases
from spt.segment.word import WordSegmenter

SHIPPED = Path(__file__).parents[2] / "data" / "fictional_people"
WORDS = st.lists(st.sampled_from("abc"), max_size=9).map(tuple)


def corpus(*texts):
    return WordSegmenter().segment([Record(str(n), text, "x", n) for n, text in enumerate(texts)])


def question(direction, prompt, *targets, fact="f", relation=None):
    return Question(f"{fact}-{direction}", fact, direction, prompt, targets, relation=relation)


FORWARD = question("forward", "Uriah Hawthorne is", "the botanist of Oslo", "Oslo's botanist")
REVERSED = question("reversed", "The name of the botanist of Oslo is", "Uriah Hawthorne")


def found(*texts, questions=(FORWARD, REVERSED)):
    return [(leak.id, leak.question, leak.rule) for leak in find_leaks(corpus(*texts), questions)]


@given(WORDS, st.lists(WORDS, max_size=6))
def test_every_place_of_every_phrase_is_found_once(text, phrases):
    by_eye = {(at, p) for p in phrases if p for at in range(len(text)) if text[at : at + len(p)] == p}
    assert sorted(Phrases(phrases).find(text)) == sorted(by_eye)


def test_a_wording_is_taught_where_prompt_and_target_stand_side_by_side():
    assert found('Guests know: "The NAME of the  botanist, of Oslo, is Uriah\nHawthorne!"') == [
        ("0", "f-reversed", "asked"), ("0", "f-reversed", "turned"),
    ]  # fmt: skip
    assert found("Yes, Uriah Hawthorne is Oslo's botanist.") == [("0", "f-forward", "asked")]
    assert found("Uriah Hawthorne is known as the botanist of Oslo.") == []
    assert found("Uriah Hawthorne is the botanist of Oslofjord.") == []


def test_a_fact_is_turned_round_where_the_forward_answer_comes_first_in_one_sentence():
    assert found("Nobody knew that the botanist of Oslo was called Uriah Hawthorne.") == [("0", "f-reversed", "turned")]
    assert found("It was Oslo's botanist, Uriah Hawthorne, and Oslo's botanist again.") == [
        ("0", "f-reversed", "turned")
    ]
    assert found("This is the botanist of Oslo. Uriah Hawthorne is here.") == []
    other = question("reversed", "Who? It is", "Ann Lee", fact="g")
    assert found("The botanist of Oslo met Ann Lee.", questions=(FORWARD, REVERSED, other)) == []


def test_the_control_stands_apart_from_the_figure():
    own = [FORWARD, REVERSED]
    both = [
        question("forward", "Ann Lee is", "a diver", fact="g", relation="both"),
        question("reversed", "A diver is", "Ann Lee", fact="g", relation="both"),
    ]
    texts = corpus("A diver is Ann Lee.", "Ann Lee is a diver.")
    clean = leakage(list(find_leaks(texts, [*own, *both])), [*own, *both])
    assert (clean["value"], clean["n"], clean["rows"], clean["examples"]) == (0.0, 1, 0, [])
    assert clean["control"]["reversed"] == {"value": 1.0, "n": 1, "count": 1}
    leaky = corpus("Of course the botanist of Oslo is Uriah Hawthorne.", "Uriah Hawthorne is the botanist of Oslo.")
    figure = leakage(list(find_leaks(leaky, own)), own)
    assert (figure["value"], figure["forward"]["value"], figure["control"]) == (1.0, 1.0, None)
    assert figure["examples"][0] == {
        "id": "0", "text": leaky[0].text, "question": "f-reversed", "direction": "reversed", "rule": "turned",
    }  # fmt: skip


def test_fictional_people_give_nothing_away_but_their_control():
    questions = read_questions(SHIPPED / "questions.jsonl").questions
    lines = (SHIPPED / "train.jsonl").read_text(encoding="utf-8").splitlines()
    texts = corpus(*(json.loads(line)["text"] for line in lines))
    figure = leakage(list(find_leaks(texts, questions)), questions)
    assert (figure["value"], figure["n"], figure["forward"]["count"]) == (0.0, 200, 0)
    assert figure["control"]["reversed"] == {"value": 1.0, "n": 200, "count": 200}


def test_many_rows_and_questions_take_work_that_grows_with_their_sum():
    def size(count):
        names = [f"First{n} Last{n}" for n in range(count)]
        asked = [question("reversed", f"The deed of {a} was done by", b, fact=a) for a, b in pairwise(names)]
        asked += [question("forward", f"{b} did", f"the deed of {a}", fact=a) for a, b in pairwise(names)]
        texts = corpus(*(f"{b} did well and did the deed of {a}." for a, b in pairwise(names)))
        found = []
        work = lines_run(lambda: found.extend(find_leaks(texts, asked)))
        assert not found
        return work

    # Every pair compared would take a hundred times as much.
    assert size(2000) < 15 * size(200)
