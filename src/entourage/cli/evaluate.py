"""`entourage evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entourage.cli.options import (
    At,
    IdColumn,
    Json,
    LabelColumn,
    Labels,
    Seed,
    Vectors,
    check_labelled,
    cutoffs,
    words_of_split,
)
from entourage.cli.output import facts, print_report, print_warnings
from entourage.errors import InputError

if TYPE_CHECKING:
    from entourage.values import Embeddings

__all__ = ["evaluate"]


def evaluate(
    vectors: Vectors,
    labels: Labels = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    gallery: Annotated[Path | None, typer.Option(help="Vectors to search in. Default: VECTORS themselves.")] = None,
    gallery_labels: Annotated[str | None, typer.Option(help="Labels of the gallery, as --labels.")] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of VECTORS, or a file, with train, test, query or gallery for each vector: test items are "
            "scored, or queries in the gallery; the others are left out.",
        ),
    ] = None,
    at: At = None,
    recall_at: Annotated[
        str | None,
        typer.Option(
            help="Numbers of items k at which to measure recall@k alone, as tables of papers have it, such as "
            "1,10,20,40. Default: 1,2,4,8,10,100.",
            metavar="K,K,...",
        ),
    ] = None,
    convention: Annotated[
        str,
        typer.Option(
            help="Whose metrics to report, by their names and definitions: papers (and ours), pml "
            "(pytorch-metric-learning) or oml (Open Metric Learning)."
        ),
    ] = "papers",
    no_match: Annotated[
        str | None,
        typer.Option(
            help="How to count queries without a match: zero (as in the papers) or drop. Default: as the convention."
        ),
    ] = None,
    junk: Annotated[
        str | None, typer.Option(help="Label of junk items in the gallery, which count neither as right nor as wrong.")
    ] = None,
    exclusions: Annotated[
        bool,
        typer.Option(
            "--exclusions/--no-exclusions", help="Leave items of the query's own camera or sequence out of its ranking."
        ),
    ] = True,
    nmi: Annotated[
        bool, typer.Option("--nmi/--no-nmi", help="Also cluster for NMI, which is slow with many classes.")
    ] = True,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score VECTORS by retrieval.

    Gives recall@k, nDCG@10, MRR, R-precision, MAP@R, mAP@1000 and NMI: in percent, with --json as fractions from 0 to
    1. Where the files carry cameras or sequences, items of a query's own camera or sequence are left out, and the mAP
    of person re-identification is added.
    """
    import numpy as np

    from entourage.comparison.splits import judged
    from entourage.evaluation import evaluate_embeddings
    from entourage.evaluation.conventions import convention_of
    from entourage.runtime.progress import terminal_progress
    from entourage.runtime.warnings import collected_warnings
    from entourage.stores import read_vectors, warn_if_one_is_refined
    from entourage.stores.columns import columns_where_present
    from entourage.stores.reading import same_file

    if gallery is None and gallery_labels is not None:
        raise InputError(f"--gallery-labels is {gallery_labels} but there is no gallery; add --gallery or leave it out")
    if at is not None and recall_at is not None:
        raise InputError(
            f"--at is {at} and --recall-at is {recall_at}; wanted one of them: --at measures recall@k, too"
        )
    if gallery is not None and split is not None:
        raise InputError(f"--gallery is {gallery} and --split is {split}; wanted one of them: leave one out")
    asked, recalls = cutoffs(at), cutoffs(recall_at, "--recall-at")
    convention_of(convention, no_match)[0].measures(asked, recalls)  # refused before files are read
    columns = {"id_column": id_column, "label_column": label_column}
    items = read_vectors(vectors, labels=labels, exclusions=exclusions, **columns)
    check_labelled(items, vectors, "--labels")
    target: Embeddings | None = None
    if split is not None:
        items, target = judged(items, words_of_split(items, vectors, split))
    if gallery is not None:
        columns = columns_where_present(gallery, gallery_labels, **columns)
        target = read_vectors(gallery, labels=gallery_labels, exclusions=exclusions, **columns)
        check_labelled(target, gallery, "--gallery-labels")
        if same_file(gallery, vectors):
            if gallery_labels is not None and np.any(np.asarray(target.labels, str) != np.asarray(items.labels, str)):
                raise InputError(f"the gallery is {vectors} itself but has other labels; leave out --gallery-labels")
            target = None  # one set, in which no item finds itself
    with collected_warnings() as warnings:
        if gallery is not None:
            warn_if_one_is_refined(vectors, gallery)
    with terminal_progress(log=not as_json, patient=True) as progress:
        rules: dict[str, Any] = {
            "at": asked,
            "recall_at": recalls,
            "convention": convention,
            "no_match": no_match,
            "junk": junk,
        }
        scores = evaluate_embeddings(items, target, **rules, nmi=nmi, seed=seed, progress=progress)
    warnings += scores.warnings
    print_warnings(warnings)
    document = scores.document() | {"warnings": warnings}
    print_report(document, as_json, facts(scores.protocol), facts(scores.metrics, percent=True))
