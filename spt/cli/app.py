"""The command tree."""

import typer

from spt.cli import ask, benchmark, compare, environment, merge, report, show, stages, version

app = typer.Typer(
    name="spt",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Semantic-aware Permutation Training: teach a language model facts that it finds from either side.",
    epilog="Start with `spt show configs/demo/spt.yaml`, then `make demo`; README.md goes on with facts of your own.",
)

app.callback()(version.callback)
app.command()(stages.run)
app.command()(stages.preprocess)
app.command()(stages.train)
app.command()(stages.evaluate)
app.command()(report.report)
app.command()(compare.compare)
app.command()(show.show)
app.command()(ask.ask)
app.command()(merge.merge)
app.command("env")(environment.env)
app.add_typer(benchmark.app, name="benchmark")
