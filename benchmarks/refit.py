"""Held-out classes: whether to train anew on all of them once they have chosen the epoch.

    python benchmarks/refit.py [--data glyphs] [--root FOLDER] [--seeds 3] [--epochs 12] [--max-classes 60]

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class, or with vectors.npy and labels.npy. For each seed an encoder is trained with a
fifth of the training classes held out, and the epoch they choose is kept; another is trained on all of them for as many
epochs. The paper's refiner is fitted in both ways to the embeddings of the first. Scores are of the test classes, items
searched among themselves. Unfinished trainings are kept beside the results and go on where they were.

Each row is added to benchmarks/results/refit.json as it is done; the table is written to refit.md and, without --quick,
to docs/training.md. What is there is not measured again.
"""

from dataclasses import replace
from pathlib import Path

from entourage.encoders.embedding import embed
from entourage.encoders.saving import small_encoder_for
from entourage.evaluation import evaluate_embeddings
from entourage.refiner import PaperRefiner
from entourage.runtime.progress import terminal_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings
from markers import fill
from small_scale import Results, arguments, parser_of, protocol, run, splits

PAGE = Path(__file__).parent.parent / "docs" / "training.md"
ROWS = [(what, how) for what in ("encoder", "paper's refiner") for how in ("epoch kept", "trained anew on all")]
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
FULL, QUICK = {"epochs": 12, "max_classes": 60}, {"epochs": 4, "max_classes": 20}


def main() -> None:
    parser = parser_of(__doc__, PAGE)
    options = arguments(parser, "refit", FULL, QUICK)
    training, test = splits(options)
    with terminal_progress() as progress:
        for seed in range(options.seeds):
            settings = BaselineSettings(small_encoder_for(training), seed=seed, epochs=options.epochs)
            settings = replace(settings, patience=max(1, options.epochs))
            results = Results(options.file, options.data, protocol(training, test, settings, varied=("refit",)))
            place = options.out / f"{options.file.stem}_{options.data}_{seed}.work"
            for row in ROWS:
                if not results.has(seed, *row):
                    results.add(seed, measured(row, training, test, settings, place, progress), *row)
            report(results, options.page)
    print(options.file.with_suffix(".md").read_text())


def measured(row: tuple[str, str], training, test, settings: BaselineSettings, place: Path, progress) -> dict:
    """Metric -> score on the test classes."""
    what, how = row
    refit = how != "epoch kept"
    settings = replace(settings, refit=refit and what == "encoder")
    folder = place / ("refit" if settings.refit else "kept")
    encoder, history, _ = train_baseline(training, settings, run_folder=folder, resume=True, progress=progress)
    seen, items = (
        Embeddings.from_vectors(embed(encoder, images, progress=progress), images.ids, images.labels)
        for images in (training, test)
    )
    if what != "encoder":
        refiner = PaperRefiner(refit=refit, random_state=settings.seed).fit(seen, progress=progress)
        items, history = refiner.transform(items, context=items, progress=progress), refiner.history_
    values = evaluate_embeddings(items, nmi=False, progress=progress).metrics
    return {metric: values[metric] for metric in METRICS} | {"epoch": history.best_epoch}


def report(results: Results, page: Path | None) -> None:
    table = results.table(("what", "how"), ROWS, METRICS)
    results.file.with_suffix(".md").write_text(table)
    if page:
        fill(page, "refit", table)


if __name__ == "__main__":
    run(main)
