"""Which of the pictures of a source show a set of vectors, where nobody says which split they are of."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

from entourage import data
from entourage.data.image_set import ImageSet
from entourage.errors import EntourageError, EntourageWarning, InputError
from entourage.runs.matching import counts, places_by_id, places_in_order, places_of
from entourage.runs.media import PictureSource
from entourage.values import Embeddings

__all__ = ["pictures_of"]


def pictures_of(
    source: PictureSource, items: Embeddings, context: Embeddings | None = None, *, split: str | None = None
) -> PictureSource:
    """Choose the split whose pictures show the items, and refuse pictures that cannot be matched.

    By id wherever ids agree, in whatever split; else by order, if there are as many pictures as items: those that are
    tested, or all of them.

    Parameters
    ----------
    source : PictureSource
        A dataset, folder or .csv.
    items : Embeddings
        N items.
    context : Embeddings, optional
        M items of a gallery.
    split : str, optional
        The split, or several separated by commas, where it is said; nothing is chosen then.

    Returns
    -------
    PictureSource
        With the split whose pictures are shown.
    """
    both = [each for each in (items, context) if each is not None]
    if split is not None:
        source = replace(source, split=split)
        loaded = {split: source.load()}
        if any(places_of(each, place, loaded[split]) is None for place, each in enumerate(both)):
            raise _unmatched(source, both, loaded)
        return source
    loaded, best, most = {}, "", 0
    for name, sets in _loaded(source):
        loaded[name], found = sets, _found(both, sets)
        if found > most:
            best, most = name, found
        if found == sum(map(len, both)):
            break
    if most:
        return replace(source, split=best)
    for name, sets in loaded.items():  # queries and a gallery are of two splits
        if len(sets) >= len(both) and all(
            places_in_order(each, place, sets) is not None for place, each in enumerate(both)
        ):
            _warn_of_order(source, items, sets)
            return replace(source, split=name)
    raise _unmatched(source, both, loaded)


def _found(both: list[Embeddings], sets: list[ImageSet]) -> int:
    return sum(place is not None for each in both for place in places_by_id(each, sets))


def _loaded(source: PictureSource) -> Iterator[tuple[str, list[ImageSet]]]:
    """The splits that may be meant, and their sets: first those that are tested, which `embed` takes by default."""
    names = data.splits(source.source, source.root, **source.options)
    tested = ",".join(name for name in names if name != "train")
    by_path = source.source not in data.DATASETS
    loaded, refused = 0, []
    for split in (tested, *(["all"] if by_path else []), ",".join(names)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EntourageWarning)  # classes of one picture are no matter here
                sets = replace(source, split=split).load()
        except EntourageError as error:  # a folder without classes has no split but "all"
            refused.append(error)
            continue
        loaded += 1
        yield split, sets
    if not loaded:
        raise refused[-1]


def _warn_of_order(source: PictureSource, items: Embeddings, sets: list[ImageSet]) -> None:
    if items.named:
        text = (
            f"no id of the vectors, such as {items.ids[0].item()!r}, is that of a picture of {source.source}, such as "
            f"{str(sets[0].ids[0])!r}; as there are as many of both, they are taken in order"
        )
        warnings.warn(text, EntourageWarning, stacklevel=3)


def _unmatched(source: PictureSource, both: list[Embeddings], loaded: dict[str, list[ImageSet]]) -> InputError:
    seen = ", ".join(f"{counts(sets)} in {split}" for split, sets in loaded.items())
    vectors = " and ".join(str(len(each)) for each in both)
    example = str(next(iter(loaded.values()))[0].ids[0])
    ids = f"with ids such as {both[0].ids[0].item()!r}" if both[0].named else "without ids"
    return InputError(
        f"{source.source} has pictures such as {example!r} ({seen}) for {vectors} vectors {ids}; wanted ids that "
        "agree, or one picture per vector, in order: name another --split, or a .csv with the columns path and id"
    )
