"""`spt show`: one sentence through every stage of the picture, coloured.

Colours only support what the text says: units are also parted by `|`, tokens by `·`, and tokens that are not learned
are dim and in brackets.
"""

from collections.abc import Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from spt.augment import draw_context, make_augmenters
from spt.augment.stored import Augmenter, Made
from spt.cli.options import ConfigFile, Json, Output, Quiet, Set, console, emit, setup
from spt.cli.show_run import result_rows
from spt.config import Config, Permute
from spt.corpus import Rejects, read_records, stop
from spt.encode import IGNORED, Encoder
from spt.errors import InputError
from spt.permute import ORDERS, arrange, generator_for
from spt.records import Example, Ordering, Record, Segmentation, Tag

UNIT_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


def show(
    config: ConfigFile,
    text: Annotated[str | None, typer.Option("--text", help="The sentence (default: the corpus's first).")] = None,
    overrides: Set = None,
    output: Output = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show one sentence in every stage: units, orders, tokens, what is learned, loss, scores.

    Example: `spt show configs/demo/spt.yaml --text "Ann Lee wrote The Salt Road."`
    """
    settings = setup(config, overrides, {"output": output}, quiet=quiet)
    from spt.segment import make_segmenter

    record = _record(settings, text)
    segmentation = make_segmenter(settings.segment).segment([record])[0]
    drawn = draw_each(segmentation, settings)
    orderings = [ordering for ordering, _ in drawn]
    if as_json:
        texts = {o.order: o.text for o in orderings if o.tokens is None or o.order == "original"}
        emit({"text": record.text, "units": segmentation.units, "orders": texts}, as_json=True)
        return
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("corpus", Text(record.text))
    if added := _added(record, settings):
        table.add_row("augment", Group(*added))
    table.add_row("segment", _units(segmentation))
    table.add_row("permute", Group(*(_ordering(*one, segmentation, settings.permute) for one in drawn)))
    for name, cell in _model_rows(settings, orderings):
        table.add_row(name, cell)
    console().print(table)


def draw_each(segmentation: Segmentation, config: Config) -> list[tuple[Ordering, list[str]]]:
    """Return each order that the text has in some epoch, and which are drawn so: all, where nothing can move."""
    settings = config.permute
    found: dict[str, tuple[Ordering, list[str]]] = {}
    for order in ORDERS:
        if order in settings.all_orders:
            generator = generator_for(config.seed, 0, segmentation.id)
            drawn = arrange(segmentation, order, generator, settings, config.segment)
            drawn = draw_context(drawn, config.augment, generator)
            found.setdefault(drawn.order, (drawn, []))[1].append(order)
    return list(found.values())


def _record(config: Config, text: str | None) -> Record:
    if text is not None:
        if not text.strip():
            raise InputError("--text is blank; give a sentence")
        return Record("shown", text, "--text", 1)
    if config.data.train is None:
        raise InputError("the config has no corpus (data.train); give --text")
    reject = stop if config.data.on_error == "stop" else Rejects()
    record = next(read_records(config.data.train, reject=reject, limit=1), None)
    if record is None:
        raise InputError("the corpus (data.train) has no record to show; give --text")
    return record


def _added(record: Record, config: Config) -> list[Text]:
    """Return what else is learned beside a record; what an assistant would say is not asked for."""
    lines = [
        Text(f"{one.name}: an assistant is asked by `spt preprocess`", "dim") for one in config.augment if one.asks
    ]
    for name, augmenter in make_augmenters(one for one in config.augment if not one.asks).items():
        for made in _made(augmenter, record):
            lines.append(Text(f"{name}: {made}", "dim") if isinstance(made, str) else Text(f"{name}  {made.text}"))
    return lines


def _made(augmenter: Augmenter, record: Record) -> Made:
    try:
        return augmenter.make([record])[0]
    except InputError as error:  # a column that a sentence of one's own does not have
        return [str(error)]


def _units(segmentation: Segmentation) -> Text:
    cell = Text()
    for number, unit in enumerate(segmentation.units):
        cell.append(unit.strip(), UNIT_COLOURS[number % len(UNIT_COLOURS)])
        cell.append(" | " if number < len(segmentation.units) - 1 else "", "dim")
    cell.append(f"   ({len(segmentation.units)} units, {segmentation.segmenter})", "dim")
    return cell


def _shares(orders: Collection[str], settings: Permute) -> str:
    """Return how often any of some orders is drawn, in each phase of the curriculum."""
    shares = []
    for begin in (0, *(phase.epoch for phase in settings.curriculum)):
        weights = settings.orders_in(begin)
        share = sum(weight for name, weight in weights.items() if name in orders) / sum(weights.values())
        shares.append(f"{share:.0%}" + (f" from epoch {begin}" if begin else ""))
    return ", ".join(shares)


def _ordering(ordering: Ordering, asked: Collection[str], segmentation: Segmentation, settings: Permute) -> Text:
    cell = Text(f"{ordering.order} {_shares(asked, settings)}  ", "dim")
    cell.append(ordering.context, "dim")
    starts = [start for start, _ in segmentation.spans]
    for piece in ordering.pieces:
        style = "dim"
        if piece.source is not None and ordering.text[piece.start : piece.end].strip():
            unit = max(index for index, start in enumerate(starts) if start <= piece.source)
            style = UNIT_COLOURS[unit % len(UNIT_COLOURS)]
        cell.append(ordering.text[piece.start : piece.end], style)
    if ordering.tokens is not None and ordering.order != "original":
        cell.append("   (its tokens move when it is encoded)", "dim")
    return cell


def _model_rows(config: Config, orderings: list[Ordering]) -> list[tuple[str, Any]]:
    """Return the rows from encode on; what is not trained yet says which command does it."""
    from spt.model.tag import choose_tag

    rows: list[tuple[str, Any]] = []
    examples: list[Example] = []
    tokenizer = _tokenizer(config)
    if tokenizer is None:
        rows.append(("encode", Text("the tokenizer is trained on the corpus by `spt train`", "dim")))
    else:
        tag = choose_tag(tokenizer, config.permute.order_tag)
        # A sentence of the user's own has no completion.
        completed = all(ordering.completion_start is not None for ordering in orderings)
        loss_on = config.train.loss_on if completed else "sequence"
        encoder = Encoder(tokenizer, tag, config.train.max_length, config.train.too_long, loss_on)
        examples = encoder.encode(orderings)
        encoded = [render_tokens(example.input_ids, example.labels, tokenizer) for example in examples]
        rejected = Text(f"rejected: longer than train.max_length, {config.train.max_length} tokens", "dim")
        rows.append(("encode", Group(*encoded) if examples else rejected))
        rows.append(("batch", Group(*_batch(config, examples, tokenizer, tag)) if examples else Text("empty", "dim")))
    rows += result_rows(config, examples)
    return rows


def _batch(config: Config, examples: list[Example], tokenizer: Any, tag: Tag | None) -> list[Text]:
    """Return the shape of a batch of examples, and where the objective masks tokens, what it masks."""
    from spt.loss import OBJECTIVES, Draw

    objective = OBJECTIVES[config.train.objective]
    mask_id = objective.choose_mask(tokenizer, tag)
    for step in count():
        draw = Draw(config.seed, 0, step, mask_id)
        batch = objective.collate(examples, tokenizer.pad_token_id or 0, draw, packing=config.train.packing)
        # Some objectives mask tokens at some steps alone.
        if mask_id is None or batch.visible is not None:
            break
    height, width = batch.input_ids.shape
    shape = f"{height} x {width} tokens, {1 - batch.tokens / batch.size:.0%} padding, {batch.target_tokens} learned"
    if batch.visible is None:
        return [Text(shape)]
    return [Text(f"{shape}, as drawn at step {step + 1}"), *render_batch(batch, tokenizer)]


def _tokenizer(config: Config) -> Any:
    from spt.model import load_tokenizer, read_tokenizer

    if config.model.base is not None:
        return load_tokenizer(config.model)
    own = Path(config.output) / "train" / "tokenizer"
    return read_tokenizer(str(own)) if own.exists() else None


def render_batch(batch: Any, tokenizer: Any) -> list[Text]:
    """Return the rows of a batch without padding.

    Where tokens are masked a row has three lines: the input, the labels at their places, and which tokens the others
    attend to (1) or not (0).
    """
    lengths = (batch.size,) if batch.packed else batch.lengths
    rows = list(zip(batch.input_ids.tolist(), batch.labels.tolist(), lengths, strict=True))
    if batch.visible is None:
        return [render_tokens(ids[:length], labels[:length], tokenizer) for ids, labels, length in rows]
    lines = []
    for (ids, labels, length), visible in zip(rows, batch.visible.tolist(), strict=True):
        lines.append(Text.assemble("input     ", _joined(ids[:length], tokenizer)))
        lines.append(Text.assemble("labels    ", _joined(labels[:length], tokenizer)))
        lines.append(Text("attended  " + "·".join(str(int(seen)) for seen in visible[:length])))
    return lines


def _joined(ids: Sequence[int], tokenizer: Any) -> Text:
    """Return tokens parted by `·`, `∅` where none is learned."""
    parts = (Text("∅", "dim") if token == IGNORED else Text(_text(token, tokenizer)) for token in ids)
    return Text("·", "dim").join(parts)


def _text(token: int, tokenizer: Any) -> str:
    return str(tokenizer.decode([token])).replace("\n", "\\n")


def render_tokens(input_ids: Sequence[int], labels: Sequence[int], tokenizer: Any) -> Text:
    """Return tokens parted by `·`; what is not learned stands in brackets, dim."""
    cell = Text()
    for place, (token, label) in enumerate(zip(input_ids, labels, strict=True)):
        text = _text(token, tokenizer)
        cell.append("·" if place else "", "dim")
        cell.append(f"[{text}]" if label == IGNORED else text, "dim" if label == IGNORED else "")
    return cell
