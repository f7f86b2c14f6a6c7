"""The tree of errors: what catches what, and what each message carries."""

import doctest

import pytest

from entourage import errors
from entourage.errors import (
    CorruptImage,
    EntourageError,
    FileError,
    InputError,
    MissingExtra,
    ModelError,
    NotFittedError,
)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InputError, ValueError),
        (FileError, OSError),
        (ModelError, ValueError),
        (NotFittedError, ValueError),
        (MissingExtra, ImportError),
    ],
)
def test_each_error_is_caught_as_ours_and_as_the_builtin_it_refines(error, builtin):
    assert issubclass(error, EntourageError)
    assert issubclass(error, builtin)


@pytest.mark.parametrize("error", [InputError, FileError, ModelError, NotFittedError])
def test_the_message_is_kept_word_for_word(error):
    # OSError gives some arguments a meaning of their own: the message must not become "[Errno ...]".
    assert str(error("7 seen; wanted 8: add one")) == "7 seen; wanted 8: add one"


def test_a_missing_extra_names_its_purpose_and_the_line_that_installs_it():
    message = str(MissingExtra("faiss", "approximate search"))
    assert message.startswith("approximate search needs")
    assert message.endswith("pip install 'entourage[faiss]'")


def test_a_corrupt_image_is_a_file_error_that_knows_its_path():
    error = CorruptImage("birds/7.jpg", "it is empty")
    assert isinstance(error, FileError)
    assert (error.path, str(error)[:27]) == ("birds/7.jpg", "birds/7.jpg cannot be decod")


def test_the_public_names_are_sorted_and_complete_and_drawn_in_the_tree():
    defined = [name for name, value in vars(errors).items() if getattr(value, "__module__", "") == errors.__name__]
    defined = [name for name in defined if isinstance(getattr(errors, name), type)]
    assert errors.__all__ == [*sorted(defined), "few", "is_full_disk"]
    assert all(name in errors.__doc__ for name in defined)


def test_the_examples_hold():
    outcome = doctest.testmod(errors)
    assert (outcome.failed, outcome.attempted) == (0, 4)
