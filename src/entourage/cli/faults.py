"""The edge of the command line: whatever goes wrong becomes one sentence and an exit code.

What was refused on purpose, or is wrong with a file, exits with 2; a machine that has run out of something, and a fault
of Entourage itself, with 1. `--debug` or ENTOURAGE_DEBUG=1 shows the traceback too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb, print_exc

import typer

from entourage.cli.output import printed_warnings
from entourage.errors import EntourageError, is_full_disk
from entourage.runtime.extras import as_missing_extra

__all__ = ["one_sentence_faults"]

_REFUSED, _FAILED = 2, 1
_VARIABLES = {"numba": "NUMBA_", "matplotlib": "MPL", "huggingface_hub": "HF_", "torch": "TORCH"}
_LONGEST = 200  # characters of a path that are shown


@contextmanager
def one_sentence_faults(group: typer.Context) -> Iterator[None]:
    """Print whatever is raised in the block as one sentence; Ctrl-C leaves with 130, as shells expect.

    Parameters
    ----------
    group : typer.Context
        That of the group of commands: it knows which of them was called, and whether with --debug.
    """
    try:
        with printed_warnings():
            yield
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # `entourage ... | head` has seen enough
        raise
    except (typer.Exit, typer.Abort):  # how a command ends, which is no fault
        raise
    except Exception as error:
        if group.params.get("debug") or os.environ.get("ENTOURAGE_DEBUG", "") not in ("", "0"):
            print_exc()
        code, sentence = _told(error, group.invoked_subcommand)
        typer.echo(f"error: {' '.join(sentence.split())}", err=True)
        raise typer.Exit(code) from None


def _told(error: Exception, command: str | None) -> tuple[int, str]:
    """The exit code and the sentence for an error."""
    if isinstance(error, ModuleNotFoundError):
        missing = as_missing_extra(error, f"this `entourage {command}`")
        if missing is not None:
            return _REFUSED, str(missing)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return _FAILED, f"there is not enough memory ({_first_line(error)}); free some, or use fewer or smaller items"
    if not isinstance(error, EntourageError) and is_full_disk(error):
        return _FAILED, "there is no space left on the disk for the output; free some, or write elsewhere"
    if isinstance(error, OSError) and not isinstance(error, EntourageError) and error.filename and error.strerror:
        name, reason = _shown(error.filename), error.strerror.lower()
        return _REFUSED, f"{name} cannot be used ({reason}); check the path, and who may read and write there"
    if isinstance(error, EntourageError | OSError):
        return _REFUSED, str(error)
    for library, beginning in _VARIABLES.items():
        given = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(beginning)]
        if given and _by_its_variables(error, library):
            return _REFUSED, (
                f"{library} cannot be used ({_first_line(error)}) with {', '.join(given)}; correct or unset these"
            )
    return _FAILED, (
        f"{_first_line(error)}, which Entourage did not expect ({_place(error)}); "
        "run the command again with --debug to see the traceback, and report it"
    )


def _by_its_variables(error: Exception, library: str) -> bool:
    """Whether an error may come from variables of a library: most read theirs as they are loaded, numba at any time."""
    if library == "numba" and "NUMBA_DISABLE_JIT" in os.environ:
        return True
    within = [frame for frame in extract_tb(error.__traceback__) if f"{os.sep}{library}{os.sep}" in frame.filename]
    return any(library == "numba" or frame.name == "<module>" for frame in within)


def _shown(path: str | bytes | int) -> str:
    """A path in a message; of a very long name, the beginning."""
    name = path if isinstance(path, str) else str(path)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _place(error: Exception) -> str:
    """The innermost line of Entourage that the error came through."""
    package = str(Path(__file__).parents[1])
    own = [each for each in extract_tb(error.__traceback__) if each.filename.startswith(package)]
    return f"{Path(own[-1].filename).relative_to(package)}, line {own[-1].lineno}" if own else "outside its code"
