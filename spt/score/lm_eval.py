"""Questions → tasks of lm-evaluation-harness: `lm_eval --include_path DIR --tasks spt`.

    forward.jsonl  reversed.jsonl        the questions, with the choices of each
    spt_forward.yaml ...                 generation; spt_forward_mc.yaml ... multiple choice; spt.yaml the group
    spt_functions.py                     how they are read and judged

In: a question set. Out: a folder that needs spt no longer, and may be moved. Trade-off: the harness splits prompt and
answer by the number of tokens that the prompt alone has, we by characters; both are the same where white space stands
between them, so an answer is handed over with its space, but not where a token spans the border of a script without.
"""

import inspect
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

import spt
from spt.artifact import dump_json, write_atomically
from spt.benchmark.questions import read_questions
from spt.config import Config
from spt.errors import InputError
from spt.metrics import match, text
from spt.records import DIRECTIONS, MATCH_RULES, Direction, Question, join_texts
from spt.score.questions import spread
from spt.statistics import Floors

GROUP = "spt"
_JUDGED = (match.exact, match.startswith, match.contains)


def export_lm_eval(config: Config, folder: Path) -> dict[str, int]:
    """Return how many questions each task holds, after writing the tasks to `folder`.

    Wrong choices are a question's distractors, or where it has none the answers of other facts that its floor is made
    of. Raises InputError where nothing is asked, or the folder holds other files.
    """
    if config.data.questions is None:
        raise InputError("data.questions: nothing is asked; give path: questions.jsonl")
    asked = read_questions(config.data.questions).questions
    asked = spread(asked, config.evaluate.limit or len(asked))
    floors = Floors(asked, config.seed, config.evaluate.floor_targets)
    directions = [one for one in DIRECTIONS if any(True for _ in _own(asked, one))]
    chosen = [one for one in directions if any(len(_answers(question, floors)) > 1 for question in _own(asked, one))]
    files = _files(directions, chosen, config.evaluate.max_new_tokens)
    rows = {f"{one}.jsonl" for one in directions}
    strange = sorted({path.name for path in folder.glob("*")} - files.keys() - rows - {"__pycache__"})
    if strange:
        raise InputError(f"{folder}: holds {strange[0]}, which is none of these tasks; give a new folder")
    for name, content in files.items():
        write_atomically(folder / name, content)
    counts: dict[str, int] = {}
    for direction in directions:
        task = f"{GROUP}_{direction}"
        found = _write_rows(folder / f"{direction}.jsonl", _own(asked, direction), floors)
        counts[task], counts[f"{task}_mc"] = found
    return counts


def _own(asked: Iterable[Question], direction: Direction) -> Iterator[Question]:
    return (question for question in asked if question.direction == direction)


def _write_rows(path: Path, questions: Iterable[Question], floors: Floors) -> tuple[int, int]:
    """Return how many questions were written, and how many of them leave a choice."""
    sizes: Counter[bool] = Counter()

    def lines() -> Iterator[str]:
        for question in questions:
            row = _row(question, _answers(question, floors))
            sizes[len(row["choices"]) > 1] += 1
            yield dump_json(row, indent=None) + "\n"

    write_atomically(path, lines())
    return sizes.total(), sizes[True]


def _answers(question: Question, floors: Floors) -> tuple[str, ...]:
    """Return the answers to choose from, the right one first."""
    wrong = question.distractors or [targets[0] for targets in floors[question]]
    return tuple(dict.fromkeys((question.targets[0], *wrong)))


def _row(question: Question, answers: Iterable[str]) -> dict[str, Any]:
    return {
        "id": question.id,
        "fact_id": question.fact_id,
        "direction": question.direction,
        "prompt": question.prompt,
        "targets": question.targets,
        "choices": [_continuation(question.prompt, answer) for answer in answers],
    }


def _continuation(prompt: str, answer: str) -> str:
    return join_texts(prompt, answer)[len(prompt) :]


def _files(directions: Iterable[str], chosen: Container[str], max_new_tokens: int) -> dict[str, str]:
    """Return the files that hold no questions; those directions are `chosen` whose questions leave a choice."""
    tasks = [f"{GROUP}_{one}{kind}" for one in directions for kind in ("", "_mc") if not kind or one in chosen]
    files = {"spt_functions.py": _functions()}
    files |= {f"{task}.yaml": _task(task, max_new_tokens) for task in tasks}
    files[f"{GROUP}.yaml"] = "".join([f"group: {GROUP}\ntask:\n", *(f"  - {name}\n" for name in tasks)])
    return files


def _task(name: str, max_new_tokens: int) -> str:
    return _render(
        "lm_eval_task.yaml.j2",
        task=name,
        direction=name.split("_")[1],
        choice=name.endswith("_mc"),
        max_new_tokens=max_new_tokens,
        rules={rule.__name__: MATCH_RULES[rule.__name__] for rule in _JUDGED},
    )


def _functions() -> str:
    # The source itself, so that no second wording of a rule can drift from the first.
    sources = [inspect.getsource(rule).strip() for rule in (text.trim, text.fold, *_JUDGED)]
    return _render(
        "lm_eval_functions.py.j2",
        space=ascii(text._SPACE),
        quotes=ascii(text._QUOTES),
        punctuation=ascii(text._PUNCTUATION),
        rules="\n\n\n".join(sources),
    )


def _render(name: str, **values: Any) -> str:
    template = resources.files("spt.score").joinpath(name).read_text(encoding="utf-8")
    # Neither Python nor YAML is HTML: nothing is to be escaped.
    environment = Environment(  # noqa: S701  # YAML is written, no HTML
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template).render(version=spt.__version__, **values)
