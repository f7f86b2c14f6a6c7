"""Which picture belongs to which vector: by id, by the name of its file, or by order."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias

from entourage.data.image_set import ImageSet, column_of
from entourage.data.layout import is_image_name
from entourage.values import Embeddings

__all__ = ["Place", "counts", "places_by_id", "places_in_order", "places_of"]

Place: TypeAlias = tuple[ImageSet, int]
"""A picture: the set it is in, and its row there."""


def places_of(items: Embeddings, place: int, sets: Sequence[ImageSet]) -> Sequence[Place | None] | None:
    """Find the picture of each item: by id if any is found so, otherwise by order.

    Parameters
    ----------
    items : Embeddings
        N items.
    place : int
        Which of the sets is theirs: 0 for the items, 1 for their gallery.
    sets : sequence of ImageSet
        Where pictures are looked for.

    Returns
    -------
    sequence of N places, or None
        None for an item without a picture; None alone where neither ids nor numbers agree.
    """
    found = places_by_id(items, sets)
    if any(each is not None for each in found):
        return found
    return places_in_order(items, place, sets)


def places_by_id(items: Embeddings, sets: Sequence[ImageSet]) -> list[Place | None]:
    """Find pictures by the ids of the items.

    An id may be that of a picture or its path; where more are found so, the name of its file, with or without its
    ending, if no other picture is called the same.

    Parameters
    ----------
    items : Embeddings
        N items.
    sets : sequence of ImageSet
        Where pictures are looked for; the first that has an id wins.

    Returns
    -------
    list of N places
        None for an item that is not found; for every item if they have no ids of their own.
    """
    best: list[Place | None] = [None] * len(items)
    if not items.named:
        return best
    wanted = items.ids.astype(str).tolist()
    for column, form in (("ids", str), ("names", str), ("names", _file_name), ("names", _stem)):
        places = _by_name(sets, column, form)
        found = [places.get(form(item)) for item in wanted]
        if found.count(None) < best.count(None):
            best = found
        if None not in best:
            break
    return best


def places_in_order(items: Embeddings, place: int, sets: Sequence[ImageSet]) -> list[Place | None] | None:
    """Take pictures in the order of the items.

    Parameters
    ----------
    items, place, sets
        As in `places_of`.

    Returns
    -------
    list of N places, or None
        Of all sets one after the other if that makes as many, else of the set at that place; None if neither does.
    """
    every: list[Place | None] = [(images, row) for images in sets for row in range(len(images))]
    if len(every) != len(items):
        every = [(images, row) for images in sets[place : place + 1] for row in range(len(images))]
    return every if len(every) == len(items) else None


def counts(sets: Sequence[ImageSet]) -> str:
    """How many pictures the sets have, in words."""
    return " and ".join(str(len(images)) for images in sets)


def _by_name(sets: Sequence[ImageSet], column: str, form: Callable[[str], str]) -> dict[str, Place]:
    """Pictures by a form of their names, as far as only one picture has it."""
    places: dict[str, Place] = {}
    ids: dict[str, str] = {}
    shared = set()
    for name, item, place in _pictures(sets, column):
        key = form(name)
        if key not in places:
            places[key], ids[key] = place, item
        elif ids[key] != item:
            shared.add(key)
    return {key: place for key, place in places.items() if key not in shared}


def _pictures(sets: Sequence[ImageSet], column: str) -> Iterator[tuple[str, str, Place]]:
    for images in sets:
        names = column_of(images, column)
        for row, (name, item) in enumerate(zip(images.ids if names is None else names, images.ids, strict=True)):
            yield str(name), str(item), (images, row)


def _file_name(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).name


def _stem(path: str) -> str:
    name = _file_name(path)
    return PurePosixPath(name).stem if is_image_name(name) else name
