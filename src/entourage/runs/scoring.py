"""What follows the training of an encoder: its scores on the test set, and the protocol they were measured under."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entourage.data.image_set import Items, column_of
from entourage.errors import InputError
from entourage.evaluation import Scores, evaluate_embeddings
from entourage.runtime.progress import Progress
from entourage.systems.settings import EncoderSettings
from entourage.systems.trained import is_refitted
from entourage.training.history import History
from entourage.training.sampling import hold_out_classes, usable_classes
from entourage.values import Embeddings, IntArray, labels_of

if TYPE_CHECKING:
    from entourage.encoders.protocol import Encoder

__all__ = ["embed_images", "score_encoder", "training_protocol"]


def score_encoder(
    encoder: "Encoder",
    tests: dict[str, Items],
    *,
    strict: bool,
    nmi: bool,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Scores, list[str]]:
    """Score an encoder on its test sets: one set searched among itself, or queries and their gallery.

    Parameters
    ----------
    encoder : Encoder
        The encoder to score.
    tests : dict of ImageSet
        The image sets by name: test, or query and gallery.
    strict : bool
        Whether a picture that cannot be decoded is an error.
    nmi : bool
        Whether to cluster the pictures for NMI.
    seed : int
        Seed of the clusters.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    scores : Scores
    corrupt : list of str
        Paths of the pictures that cannot be decoded and are left out.
    """
    embedded = [embed_images(encoder, images, strict=strict, progress=progress) for images in tests.values()]
    items = [found for _, found, _ in embedded]
    gallery = items[1] if len(items) > 1 else None
    scores = evaluate_embeddings(items[0], gallery, nmi=nmi, seed=seed, progress=progress)
    return scores, [path for *_, corrupt in embedded for path in corrupt]


def embed_images(
    encoder: "Encoder", images: Items, *, strict: bool = False, progress: Progress | None = None
) -> tuple[IntArray, Embeddings, list[str]]:
    """Embed the pictures of a set.

    Parameters
    ----------
    encoder : Encoder
        The encoder to embed with.
    images : ImageSet
        N pictures.
    strict : bool
        Whether a picture that cannot be decoded is an error.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    rows : array of shape (n,)
        The pictures that can be decoded.
    items : Embeddings
        Their embeddings.
    corrupt : list of str
        Paths of the other pictures.
    """
    from entourage.encoders.embedding import embed_shards

    rows, vectors, corrupt = next(
        embed_shards(encoder, images, shard_size=len(images), strict=strict, progress=progress)
    )
    if not len(rows):
        raise InputError(f"none of the {len(images)} pictures to test with can be decoded; check the files")
    known = (column_of(images, name) for name in ("cameras", "sequences"))
    cameras, sequences = (None if values is None else values[rows] for values in known)
    labels = labels_of(images)[rows]
    items = Embeddings.from_vectors(vectors, images.ids[rows], labels, cameras=cameras, sequences=sequences)
    return rows, items, corrupt


def training_protocol(
    source: str | Path,
    system: str,
    settings: EncoderSettings,
    training: Items,
    tests: dict[str, Items],
    history: History,
) -> dict:
    """Describe what the encoder was trained on, by which system, and which epoch was kept.

    Parameters
    ----------
    source : str or path
        The dataset, folder, .csv or file of vectors.
    system : str
        The system that trained the encoder.
    settings : EncoderSettings
        The settings of the system.
    training : ImageSet
        The set it was trained on.
    tests : dict of ImageSet
        The sets it is tested on, by name.
    history : History
        The history of the training.

    Returns
    -------
    dict
        Entries of the protocol, as text.
    """
    best = history.best_score
    chosen = "the last" if best is None else f"best MAP@R of held-out training classes, {100 * best:.2f} %"
    kind = "vectors" if hasattr(training, "vectors") else "pictures"
    return {
        "data": f"{source}, {' in '.join(tests)}: {_unseen(training, tests)}",
        "trained_on": f"{len(training)} {kind} of {_classes(training, settings)}",
        "system": system,
        **{name: getattr(settings, name) for name in ("encoder", "loss", "seed") if hasattr(settings, name)},
        "epoch_kept": f"{history.best_epoch} of {history.epoch}: {chosen}{_again(settings, history)}",
    }


def _again(settings: EncoderSettings, history: History) -> str:
    return "; trained anew on all classes for as many" if is_refitted(settings, history) else ""


def _classes(training: Items, settings: EncoderSettings) -> str:
    """How many, how many are held out, and what was asked for in vain."""
    labels = labels_of(training)
    held_out = hold_out_classes(labels, settings.validation_share, settings.seed)
    count = len(np.unique(labels[held_out]))
    note = f", {count} of them held out to choose the epoch" if count else ""
    if settings.validation_share and not count:
        note = ", too few to hold some out for choosing the epoch"
    learned = len(usable_classes(labels[~held_out]))
    if learned < settings.batch_classes:
        note += f"; batches of {learned} classes, as there are fewer than the {settings.batch_classes} asked for"
    return f"{len(np.unique(labels))} classes{note}"


def _unseen(training: Items, tests: dict[str, Items]) -> str:
    tested = np.unique(np.concatenate([np.unique(labels_of(images)) for images in tests.values()]))
    seen = int(np.isin(tested, labels_of(training)).sum())
    return f"{seen} of {len(tested)} classes were trained on too" if seen else "classes unseen in training"
