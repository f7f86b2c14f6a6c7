"""Divide and conquer against its baseline, on unseen classes: scores, Table S1 and Figures S1 and S2 in small.

    python benchmarks/divide.py [--data glyphs] [--root FOLDER] [--seeds 3] [--epochs 20]
    python benchmarks/divide.py --quick          # fewer classes, one seed: minutes on two cores

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class, or with vectors.npy and labels.npy. For each seed two encoders are trained on
the training classes, by the same loss, in batches of the same size, for the same number of epochs: the baseline on the
whole embedding, the other divided among learners. Of each the epoch with the best MAP@R of held-out training classes is
kept; scores are of the test classes, items searched among themselves. The baseline's embedding is cut into slices like
the learners'.

Each seed is added to benchmarks/results/divide.json as it is done, and tables and figures are made anew: divide.md,
divide_DATA_first.png (Fig. S2), divide_DATA_only.png (Fig. S1). Without --quick the tables fill their place in
docs/divide_and_conquer.md too. A seed that is there already is not measured again.
"""

import argparse
import json
import os
from dataclasses import fields
from pathlib import Path

import numpy as np

from entourage import data
from entourage.embedding import embed
from entourage.errors import EntourageError
from entourage.evaluation import evaluate_embeddings
from entourage.figures import save
from entourage.figures.slices import draw_first_slices, draw_specialities
from entourage.progress import terminal_progress
from entourage.settings import DivideSettings, TrainSettings, to_dict
from entourage.systems.baseline import train_baseline
from entourage.systems.divide_and_conquer import train_divided
from entourage.systems.divide_and_conquer.analysis import SliceScores, score_slices
from entourage.values import Embeddings
from markers import fill

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "divide_and_conquer.md"
MODELS = ("baseline", "divided")
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
RECALL_AT = (1, 2, 4, 8)  # Figure S2
QUICK_CLASSES, QUICK_EPOCHS = 60, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="glyphs", help="a dataset, or a folder under --root")
    parser.add_argument("--root", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0 (3; 1 with --quick)")
    parser.add_argument("--epochs", type=int, help=f"of every encoder (20; {QUICK_EPOCHS} with --quick)")
    parser.add_argument("--learners", type=int, default=DivideSettings.learners, help="slices, and clusters")
    parser.add_argument("--lost-at", type=int, default=30, help="others find nothing among so many (Fig. S1)")
    parser.add_argument("--max-classes", type=int, help=f"of each split (all; {QUICK_CLASSES} with --quick)")
    parser.add_argument("--quick", action="store_true", help="smaller, written to divide_quick.*")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose tables are filled, without --quick")
    options = with_defaults(parser.parse_args())
    try:
        training, test = (some_classes(load(options, split), options.max_classes) for split in ("train", "test"))
    except EntourageError as error:
        raise SystemExit(str(error)) from error
    file = options.out / f"divide{'_quick' if options.quick else ''}.json"
    with terminal_progress(log=True) as progress:
        for seed in range(options.seeds):
            settings = settings_of(training, seed, options)
            result = begun(file, options.data, protocol(training, test, settings, options.lost_at))
            for model in MODELS:
                if str(seed) in result["scores"].get(model, {}):
                    continue
                items = embedded(model, training, test, settings, progress)
                chosen = {"recall_at": RECALL_AT, "lost_at": options.lost_at}
                slices = score_slices(items, options.learners, progress=progress, **chosen)
                keep(file, options.data, model, seed, measured(items, slices, progress))
                if model == "divided" and seed == 0 and hasattr(test, "picture"):
                    draw_only(file, options.data, test, slices.only, options.lost_at)
            report(file, options.data, None if options.quick else options.page)
    print(file.with_suffix(".md").read_text())


def with_defaults(options):
    options.seeds = options.seeds or (1 if options.quick else 3)
    options.epochs = options.epochs or (QUICK_EPOCHS if options.quick else DivideSettings.epochs)
    options.max_classes = options.max_classes or (QUICK_CLASSES if options.quick else None)
    return options


# ---- data --------------------------------------------------------------------------------------------------------


def load(options, split: str):
    if options.data == "glyphs":
        return data.load("glyphs", split, max_classes=options.max_classes)  # only what is asked for is drawn
    if options.data in data.DATASETS:
        return data.load(options.data, split, options.root)
    folder = Path(options.root or ".") / options.data
    if (folder / "vectors.npy").is_file() and not (folder / "images").is_dir():
        return data.load(folder / "vectors.npy", split, labels=str(folder / "labels.npy"))
    return data.load(folder / "images" if (folder / "images").is_dir() else folder, split)


def some_classes(images, count: int | None):
    """The pictures of `count` classes, evenly over the sorted ones."""
    classes = np.unique(images.labels)
    if count is None or count >= len(classes):
        return images
    chosen = classes[np.linspace(0, len(classes) - 1, count).round().astype(int)]
    return images.take(np.flatnonzero(np.isin(images.labels, chosen)))


# ---- measuring ---------------------------------------------------------------------------------------------------


def settings_of(images, seed: int, options) -> DivideSettings:
    """No encoder ends before all its epochs: both have as many."""
    encoder = "linear"
    if hasattr(images, "picture"):
        encoder = "small" if images.picture(0).mode == "L" else "small-rgb"
    epochs = {"epochs": options.epochs, "patience": max(1, options.epochs)}
    return DivideSettings(encoder=encoder, learners=options.learners, seed=seed, **epochs)


def embedded(model: str, training, test, settings: DivideSettings, progress) -> Embeddings:
    """The test classes by an encoder trained in one of both ways, with settings that are otherwise the same."""
    if model == "divided":
        encoder, _ = train_divided(training, settings, progress=progress)
    else:
        shared = {field.name: getattr(settings, field.name) for field in fields(TrainSettings)}
        encoder, _ = train_baseline(training, TrainSettings(**shared), progress=progress)
    return Embeddings.from_vectors(embed(encoder, test, progress=progress), test.ids, test.labels)


def measured(items: Embeddings, slices: SliceScores, progress) -> dict:
    values = evaluate_embeddings(items, nmi=False, progress=progress).metrics
    return {metric: values[metric] for metric in METRICS} | {
        "alone": slices.alone[1],
        "first": {str(k): recalls for k, recalls in slices.first.items()},
        "correlation": slices.correlation,
        "only": [len(rows) for rows in slices.only],
    }


def protocol(training, test, settings: DivideSettings, lost_at: int) -> dict:
    said = {
        name: f"{len(images)} items of {len(np.unique(images.labels))} classes"
        for name, images in (("training", training), ("test", test))
    }
    varied = ("seed", "workers")
    said["lost_at"] = lost_at
    return said | {"settings": {name: value for name, value in to_dict(settings).items() if name not in varied}}


# ---- results -----------------------------------------------------------------------------------------------------


def read(file: Path) -> dict:
    return json.loads(file.read_text()) if file.exists() else {}


def begun(file: Path, dataset: str, measured_under: dict) -> dict:
    """What is there of this dataset, if it was measured under the same protocol."""
    result = read(file).get(dataset, {"protocol": measured_under, "scores": {}})
    if result["protocol"] != measured_under:
        raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")
    if dataset not in read(file):
        write(file, read(file) | {dataset: result})
    return result


def keep(file: Path, dataset: str, model: str, seed: int, scores: dict) -> None:
    results = read(file)
    results[dataset]["scores"].setdefault(model, {})[str(seed)] = scores
    write(file, results)


def write(file: Path, results: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")


def report(file: Path, dataset: str, page: Path | None) -> None:
    """Tables of all datasets, the figure of this one, and the page's place for the tables."""
    results = read(file)
    text = scores_table(results) + "\n" + "\n".join(slices_table(name, of) for name, of in results.items())
    file.with_suffix(".md").write_text(text)
    first = {
        model: {k: mean_of(by_seed, lambda scores, k=k: scores["first"][str(k)]).tolist() for k in RECALL_AT}
        for model, by_seed in results[dataset]["scores"].items()
    }
    title = f"{dataset}: recall of the first m slices, unseen classes"
    save(draw_first_slices(first, title), file.with_name(f"{file.stem}_{dataset}_first.png"))
    if page is not None:
        fill(page, "divide", text)


def draw_only(file: Path, dataset: str, images, found: list[np.ndarray], lost_at: int) -> None:
    """Pictures that one learner alone gets right, of the first seed."""
    pictures = [[images.picture(int(row)) for row in rows[:10]] for rows in found]
    title = f"{dataset}: queries that one learner alone finds (R@1 = 1, R@{lost_at} = 0 of all others)"
    save(
        draw_specialities(pictures, [len(rows) for rows in found], title),
        file.with_name(f"{file.stem}_{dataset}_only.png"),
    )


def scores_table(results: dict) -> str:
    """Mean ± standard deviation over the seeds, in percent, of both encoders on every dataset."""
    columns = [f"{dataset} {name}" for dataset in results for name in METRICS.values()]
    lines = [f"| encoder | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for model in MODELS:
        cells = [
            _cell(result["scores"].get(model, {}), lambda scores, metric=metric: 100 * scores[metric])
            for result in results.values()
            for metric in METRICS
        ]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def slices_table(dataset: str, result: dict) -> str:
    """Table S1: R@1 of every slice, their mean, all together, and the correlation between slices."""
    settings = result["protocol"]["settings"]
    count, size = settings["learners"], settings["dim"] // settings["learners"]
    rows = [
        (f"{k + 1}", lambda scores, k=k: 100 * scores["alone"][k], ".1f", f"{k * size + 1}–{(k + 1) * size}")
        for k in range(count)
    ]
    rows += [
        ("mean", lambda scores: 100 * np.mean(scores["alone"]), ".1f", ""),
        ("all together", lambda scores: 100 * scores["first"]["1"][-1], ".1f", f"1–{settings['dim']}"),
        ("correlation", lambda scores: scores["correlation"], ".4f", ""),
        (
            f"found by one alone, R@{result['protocol']['lost_at']} = 0 of others",
            lambda scores: sum(scores["only"]),
            ".0f",
            "",
        ),
    ]
    lines = [f"| {dataset}, learner or slice | baseline | divided | dimensions |", "|---|---|---|---|"]
    for name, value, form, dimensions in rows:
        cells = [_cell(result["scores"].get(model, {}), value, form) for model in MODELS]
        lines.append(f"| {name} | {' | '.join(cells)} | {dimensions} |")
    return "\n".join(lines) + "\n"


def mean_of(by_seed: dict, value) -> np.ndarray:
    return np.mean([value(scores) for scores in by_seed.values()], axis=0)


def _cell(by_seed: dict, value, form: str = ".1f") -> str:
    values = [value(scores) for scores in by_seed.values()]
    if not values:
        return ""
    return f"{np.mean(values):{form}}" + (f" ± {np.std(values, ddof=1):{form}}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
