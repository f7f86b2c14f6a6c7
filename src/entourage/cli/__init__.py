"""The command line: a table of thin commands, each a call into the library, one file each.

Reports go to standard output, as a table or with --json as one document; everything else to standard error.
Anything wrong with files, values or settings ends in one sentence and exit code 2; so does a misused option
(usage.py).
"""

import functools
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from entourage import __version__
from entourage.cli.compare import compare
from entourage.cli.datasets import datasets
from entourage.cli.demo import demo
from entourage.cli.doctor import doctor
from entourage.cli.embed import embed
from entourage.cli.evaluate import evaluate
from entourage.cli.fit import fit
from entourage.cli.output import printed_warnings
from entourage.cli.plot import plot
from entourage.cli.refine import refine
from entourage.cli.report import report
from entourage.cli.train import train
from entourage.cli.usage import Commands
from entourage.errors import EntourageError
from entourage.runtime.extras import as_missing_extra
from entourage.runtime.waiting import wait_asleep

__all__ = ["app", "main"]

COMMANDS: tuple[Callable[..., None], ...] = (
    demo,
    train,
    embed,
    fit,
    refine,
    evaluate,
    compare,
    doctor,
    plot,
    report,
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


def one_sentence_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Errors raised on purpose become one sentence and exit code 2; Ctrl-C leaves with 130, as shells expect."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with printed_warnings():
                command(*args, **options)
        except BrokenPipeError:  # `entourage ... | head` has seen enough
            raise
        except (EntourageError, OSError) as error:
            _refuse(error)
        except ModuleNotFoundError as error:
            missing = as_missing_extra(error, f"this `entourage {command.__name__}`")
            if missing is None:
                raise
            _refuse(missing)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None

    return run


def _refuse(error: Exception) -> NoReturn:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(2) from None


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


for command in COMMANDS:
    app.command()(one_sentence_errors(command))


def main() -> None:
    wait_asleep()  # before a command loads numpy or torch
    app()
