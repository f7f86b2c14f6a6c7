"""Table 3 of *Attend to Context* in small: encoders trained by three losses, raw and refined, on unseen classes.

    python benchmarks/baselines_small.py [--data glyphs] [--root FOLDER] [--losses ms,margin,proxy-anchor] [--seeds 3]
    python benchmarks/baselines_small.py --quick          # fewer classes, one seed: minutes on two cores

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class. For each loss and seed an encoder is trained on the training classes, its epoch
chosen on some of them held out; a refiner is fitted to its embeddings of the training classes, by the relational recipe
and by the paper's; scores are of the test classes, items searched among themselves, context from the test items
without their labels. Rows are added to benchmarks/results/baselines_small.json as they come, and the table is written
to baselines_small.md.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

from entourage import data
from entourage.embedding import embed
from entourage.errors import EntourageError
from entourage.evaluation import evaluate_embeddings
from entourage.progress import terminal_progress
from entourage.settings import TrainSettings, to_dict
from entourage.systems.baseline import train_baseline
from entourage.systems.context_refiner import ContextRefiner
from entourage.values import Embeddings

RESULTS = Path(__file__).parent / "results"
LOSSES = ("ms", "margin", "proxy-anchor")
METHODS = ("raw", "relational", "paper")
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
QUICK_CLASSES, QUICK_EPOCHS = 60, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="glyphs", help="a dataset, or a folder under --root")
    parser.add_argument("--root", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--losses", default=",".join(LOSSES), help="names with commas between")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"of {', '.join(METHODS)}")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0 (3; 1 with --quick)")
    parser.add_argument("--epochs", type=int, help=f"of the encoder, at most (20; {QUICK_EPOCHS} with --quick)")
    parser.add_argument("--max-classes", type=int, help=f"of each split (all; {QUICK_CLASSES} with --quick)")
    parser.add_argument("--quick", action="store_true", help="smaller, written to baselines_small_quick.*")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = with_defaults(parser.parse_args())
    try:
        training, test = (some_classes(load(options, split), options.max_classes) for split in ("train", "test"))
    except EntourageError as error:
        raise SystemExit(str(error)) from error
    file = options.out / f"baselines_small{'_quick' if options.quick else ''}.json"
    with terminal_progress(log=True) as progress:
        for loss in options.losses.split(","):
            for seed in range(options.seeds):
                settings = encoder_settings(training, loss, seed, options.epochs)
                scores = measure(training, test, settings, options.methods.split(","), progress)
                keep(file, options.data, protocol(training, test, settings), loss, seed, scores)
    print(file.with_suffix(".md").read_text())


def with_defaults(options):
    options.seeds = options.seeds or (1 if options.quick else 3)
    options.epochs = options.epochs or (QUICK_EPOCHS if options.quick else TrainSettings.epochs)
    options.max_classes = options.max_classes or (QUICK_CLASSES if options.quick else None)
    return options


# ---- data --------------------------------------------------------------------------------------------------------


def load(options, split: str):
    if options.data == "glyphs":
        return data.load("glyphs", split, max_classes=options.max_classes)  # only what is asked for is drawn
    if options.data in data.DATASETS:
        return data.load(options.data, split, options.root)
    folder = Path(options.root or ".") / options.data
    return data.load(folder / "images" if (folder / "images").is_dir() else folder, split)


def some_classes(images, count: int | None):
    """The pictures of `count` classes, evenly over the sorted ones."""
    classes = np.unique(images.labels)
    if count is None or count >= len(classes):
        return images
    chosen = classes[np.linspace(0, len(classes) - 1, count).round().astype(int)]
    return images.take(np.flatnonzero(np.isin(images.labels, chosen)))


# ---- measuring ---------------------------------------------------------------------------------------------------


def encoder_settings(images, loss: str, seed: int, epochs: int) -> TrainSettings:
    encoder = "small" if images.picture(0).mode == "L" else "small-rgb"
    return TrainSettings(encoder=encoder, loss=loss, seed=seed, epochs=epochs)


def measure(training, test, settings: TrainSettings, methods: list[str], progress) -> dict[str, dict[str, float]]:
    """Method -> metric -> score on the test classes."""
    encoder, _ = train_baseline(training, settings, progress=progress)
    seen, unseen = (
        Embeddings.from_vectors(embed(encoder, images, progress=progress), images.ids, images.labels)
        for images in (training, test)
    )
    scores = {}
    for method in methods:
        items = unseen
        if method != "raw":
            refiner = ContextRefiner(recipe=method, seed=settings.seed).fit(seen, progress=progress)
            items = unseen.replace_vectors(refiner.transform(unseen, progress=progress))
        values = evaluate_embeddings(items, nmi=False, progress=progress).metrics
        scores[method] = {metric: values[metric] for metric in METRICS}
    return scores


def protocol(training, test, settings: TrainSettings) -> dict:
    said = {
        name: f"{len(images)} pictures of {len(np.unique(images.labels))} classes"
        for name, images in (("training", training), ("test", test))
    }
    varied = ("loss", "seed", "workers")
    return said | {"settings": {name: value for name, value in to_dict(settings).items() if name not in varied}}


# ---- results -----------------------------------------------------------------------------------------------------


def keep(file: Path, dataset: str, measured_under: dict, loss: str, seed: int, scores: dict) -> None:
    """Add the scores of one encoder to the file and write the table anew."""
    results = json.loads(file.read_text()) if file.exists() else {}
    result = results.setdefault(dataset, {"protocol": measured_under, "scores": {}})
    if result["protocol"] != measured_under:
        raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")
    for method, values in scores.items():
        result["scores"].setdefault(loss, {}).setdefault(method, {})[str(seed)] = values
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    file.with_suffix(".md").write_text(table(results))


def table(results: dict) -> str:
    """Mean ± standard deviation over the seeds, in percent, of every loss, raw and refined, on every dataset."""
    columns = [f"{dataset} {name}" for dataset in results for name in METRICS.values()]
    lines = [f"| loss | embeddings | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    losses = dict.fromkeys(loss for result in results.values() for loss in result["scores"])
    for loss in losses:
        for method in METHODS:
            cells = [
                _cell(result["scores"].get(loss, {}).get(method, {}), metric)
                for result in results.values()
                for metric in METRICS
            ]
            if any(cells):
                lines.append(f"| {loss} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(by_seed: dict, metric: str) -> str:
    values = [100 * scores[metric] for scores in by_seed.values()]
    if not values:
        return ""
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
