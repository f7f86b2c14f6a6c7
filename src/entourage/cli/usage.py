"""How a command is called: what is mistyped or goes wrong ends in one sentence, and --debug may stand anywhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from entourage.cli.faults import one_sentence_faults

__all__ = ["Commands", "one_sentence_usage"]

if TYPE_CHECKING:
    UsageError = typer.BadParameter
else:
    UsageError = typer.BadParameter.__base__  # typer has it from click, or from a copy of its own

_DEBUG = "--debug"


class Commands(TyperGroup):
    """The commands, which refuse a misused option in one sentence and with exit code 2, as they refuse bad input."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if _DEBUG in args:  # an option of all commands, wherever it stands
            args = [_DEBUG, *(each for each in args if each != _DEBUG)]
        with one_sentence_usage():
            _check_filled(args)
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with one_sentence_faults(ctx), one_sentence_usage(ctx):
            return super().invoke(ctx)


def _check_filled(args: list[str]) -> None:
    """Refuse an empty argument, which a script leaves where a variable is not set: as a path it would mean here."""
    for before, each in zip(["", *args], args, strict=False):
        if not each or (each.startswith("--") and each.find("=") == len(each) - 1):  # --out= too
            before = each.rstrip("=") or before
            place = f"the value of {before}" if before.startswith("-") else "an argument"
            raise UsageError(f"{place} is empty; wanted a value")


@contextmanager
def one_sentence_usage(group: typer.Context | None = None) -> Iterator[None]:
    """Print a usage error as one sentence; `group` names the command where the error itself does not."""
    try:
        yield
    except UsageError as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        named = f"{group.command_path} {group.invoked_subcommand or ''}".strip() if group else "entourage"
        command = error.ctx.command_path if error.ctx else named
        typer.echo(f"error: {message[:1].lower()}{message[1:]} (see `{command} --help`)", err=True)
        raise typer.Exit(2) from None
