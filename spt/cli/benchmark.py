"""`spt benchmark list / make / fetch`: corpora with their questions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from spt.cli.options import Json, Quiet, console, emit
from spt.errors import InputError
from spt.progress import configure

app = typer.Typer(no_args_is_help=True, help="Bundled, generated and public corpora with their questions.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name from `spt benchmark list`.")]
Target = Annotated[Path | None, typer.Option("--output", metavar="DIR", help="Where to write (default: data/NAME).")]
People = Annotated[
    str | None,
    typer.Option("--people", metavar="N[,N,N]", help="How many people; or taught name first, description first, both."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of what is generated or sampled (default 0).")]


@app.command("list")
def list_benchmarks(quiet: Quiet = False, as_json: Json = False) -> None:
    """Print the benchmarks that can be made or fetched.

    Example: `spt benchmark list`
    """
    from spt.benchmark import BENCHMARKS

    configure(enabled=not quiet)
    if as_json:
        emit({name: b.description for name, b in BENCHMARKS.items()}, as_json=True)
        return
    for name, benchmark in BENCHMARKS.items():
        what = f"{benchmark.description} ({benchmark.licence})"
        console().print(f"[bold]{name}[/]\n  {what}\n  {benchmark.command(name)}", soft_wrap=True)
        shown = " ".join(_flag(*one) for one in benchmark.defaults.items() if one[1] is not None)
        if shown:
            console().print(f"    defaults: {shown}", soft_wrap=True, highlight=False)


def _flag(option: str, default: Any) -> str:
    """Return an option with its default as it is given."""
    text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    text = text.lower() if isinstance(default, bool) else text
    return f"--{option} {text}" if option in ("people", "seed") else f"--set {option}={text}"


@app.command()
def make(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A name from `spt benchmark list`.", show_default=False)
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="A public set's folder, or your own file of pairs, or corpus."),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML: how the pairs of --from (subject, object) are taught and asked."),
    ] = None,
    assistant: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="For a corpus: who words the questions; a Hub id, a folder, or a YAML file with segment.assistant.",
        ),
    ] = None,
    output: Target = None,
    people: People = None,
    seed: Seed = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another option of NAME (repeatable).")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a benchmark's corpus, questions and card.

    Example: `spt benchmark make fictional-people --people 500,500,1000 --output data/large`

    Example: `spt benchmark make wiki-reversal --from corpus.jsonl --set question_share=0.5`

    Example: `spt benchmark make --from pairs.csv --templates templates.yaml --output data/mine`

    Example: `spt benchmark make --from corpus.jsonl --output data/mine`
    """
    from spt.benchmark import make_benchmark

    configure(enabled=not quiet)
    options = _options(people, seed, settings or ())
    if name is None:
        _make_own(source, templates, assistant, output, options, as_json)
        return
    if templates is not None or assistant is not None:
        raise InputError(f"--templates and --assistant go with --from a file of your own: leave out {name}")
    if source is not None:
        options["source"] = source
    _done(make_benchmark(name, _place(name, output), **options), _place(name, output), as_json)


def _make_own(
    source: Path | None,
    templates: Path | None,
    assistant: str | None,
    output: Path | None,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    if source is None:
        raise InputError(
            "give a NAME from `spt benchmark list`, --from PAIRS with --templates FILE, or --from CORPUS, for which "
            "questions are proposed"
        )
    place = output or Path("data") / source.name.split(".")[0]
    if templates is None:
        _propose(source, assistant, place, options, as_json)
        return
    if assistant is not None:
        raise InputError("--assistant words the questions of a corpus; leave it out, or --templates")
    if options:
        raise InputError(f"{', '.join(options)}: no option of pairs of your own, of which all are used; leave it out")
    from spt.benchmark.pairs import make_pairs

    _done(make_pairs(source, templates, place), place, as_json)


def _propose(source: Path, assistant: str | None, place: Path, options: dict[str, Any], as_json: bool) -> None:
    from spt.benchmark.propose import propose, read_assistant

    pipeline = options.get("pipeline", "en_core_web_sm")
    if options.keys() - {"pipeline"} or not isinstance(pipeline, str):
        given = ", ".join(f"{name}={value}" for name, value in options.items())
        raise InputError(f"{source}: questions for a corpus have one option, --set pipeline=NAME; given: {given}")
    adviser = None if assistant is None else read_assistant(assistant)
    try:
        counts = propose(source, place, pipeline_name=pipeline, assistant=adviser)
    except InputError as error:
        if source.suffix in (".csv", ".tsv"):
            error.add_note("If these are pairs (columns subject, object), say how they are told: --templates FILE")
        raise
    _done(counts, place, as_json)


@app.command()
def fetch(
    name: Name,
    output: Target = None,
    people: People = None,
    seed: Seed = None,
    revision: Annotated[str | None, typer.Option(help="A commit, tag or branch of the Hub repository.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fetch a public benchmark from the Hub, and write it in spt's formats.

    Example: `spt benchmark fetch person-description`
    """
    from spt.benchmark import fetch_benchmark

    configure(enabled=not quiet)
    place = _place(name, output)
    _done(fetch_benchmark(name, place, revision=revision, **_options(people, seed)), place, as_json)


def _place(name: str, output: Path | None) -> Path:
    return output or Path("data") / name.replace("-", "_")


def _options(people: str | None, seed: int | None, settings: Sequence[str] = ()) -> dict[str, Any]:
    from spt.config.read import apply_override

    options: dict[str, Any] = {}
    for setting in settings:
        options = apply_override(options, setting)
    if people is not None:
        parts = people.replace(",", " ").split()
        if len(parts) not in (1, 3) or not all(part.isdigit() for part in parts):
            wanted = "give one whole number, or three, such as 10,10,10"
            raise typer.BadParameter(f"{people!r}: {wanted}", param_hint="--people")
        numbers = tuple(int(part) for part in parts)
        options["people"] = numbers if len(numbers) == 3 else numbers[0]
    if seed is not None:
        options["seed"] = seed
    return options


def _done(counts: Any, place: Path, as_json: bool) -> None:
    if as_json:
        emit(dict(counts), as_json=True)
        return
    lines = [f"  {value:>7,}  {name.replace('_', ' ')}" for name, value in counts.items() if value]
    console().print("\n".join([f"{place}:", *lines]), markup=False)
