"""What the model will read of the first question, token by token, for a dry run.

In: an experiment, and which model is asked. Out: a line of text. Trade-off: only the tokenizer is loaded, so a model
that is still to be trained is shown with its base's, and one from scratch not at all.
"""

from pathlib import Path
from typing import Any

from spt.benchmark.questions import read_questions
from spt.config import Config
from spt.model import load_tokenizer, read_tokenizer, resolve_base
from spt.score.asked import framed, require_template
from spt.score.generate import prompt_ids


def reads_first(config: Config, model: str | None = None) -> str | None:
    """Return the tokens of the first prompt, parted by `·`; None where no tokenizer is on this machine yet.

    Raises ModelError where the chat template is asked for, and missing or unwilling.
    """
    settings = config.evaluate
    tokenizer = _tokenizer(config, model) if settings.server is None else None
    if tokenizer is None or config.data.questions is None:
        return None
    if settings.chat_template:
        require_template(tokenizer)
    prompt = read_questions(config.data.questions).questions[0].prompt
    (ids,) = prompt_ids(tokenizer, [framed(tokenizer, prompt, chat_template=settings.chat_template)])
    shown = "·".join(tokenizer.batch_decode([[token] for token in ids])).replace("\n", "\\n")
    how = "in the chat template" if settings.chat_template else "as plain text"
    return f"the first prompt {how}, {len(ids)} tokens: {shown}"


def _tokenizer(config: Config, model: str | None) -> Any:
    trained = Path(config.output) / "train" / "final"
    place = Path(model or trained)
    if (place / "tokenizer_config.json").exists():
        return read_tokenizer(str(place))
    if model is not None and not place.is_dir():  # a Hub id or a GGUF file
        return read_tokenizer(resolve_base(model))
    return load_tokenizer(config.model) if config.model.base is not None else None
