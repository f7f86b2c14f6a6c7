"""The command line: a table of thin commands, each a call into the library, one file each.

Reports go to standard output, as a table or with --json as one document; everything else to standard error.
Anything wrong with files, values or settings ends in one sentence and exit code 2 (faults.py); so does a misused
option (usage.py).
"""

from collections.abc import Callable
from typing import Annotated

import typer

from entourage import __version__
from entourage.cli.compare import compare
from entourage.cli.datasets import datasets
from entourage.cli.demo import demo
from entourage.cli.doctor import doctor
from entourage.cli.embed import embed
from entourage.cli.evaluate import evaluate
from entourage.cli.explore import explore
from entourage.cli.export import export
from entourage.cli.fit import fit
from entourage.cli.output import lenient_output
from entourage.cli.plot import plot
from entourage.cli.refine import refine
from entourage.cli.report import report
from entourage.cli.reproduce import reproduce
from entourage.cli.rerank import rerank
from entourage.cli.serve import serve
from entourage.cli.train import train
from entourage.cli.usage import Commands
from entourage.runtime.waiting import wait_asleep

__all__ = ["app", "main"]

COMMANDS: tuple[Callable[..., None], ...] = (
    demo,
    train,
    embed,
    fit,
    refine,
    rerank,
    export,
    serve,
    evaluate,
    compare,
    doctor,
    plot,
    report,
    explore,
    reproduce,
    datasets,
)

app = typer.Typer(
    name="entourage",
    cls=Commands,
    help="Better retrieval by letting every embedding look at its neighbours.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes around the help would take longer to load than all the rest
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="With an error, print the traceback too; may stand after the command.")
    ] = False,
) -> None:
    lenient_output()
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


for command in COMMANDS:
    app.command()(command)


def main() -> None:
    wait_asleep()  # before a command loads numpy or torch
    app()
