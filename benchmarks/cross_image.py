"""Cross-image attention against the baseline at equal epochs, on unseen classes, and the paper's figures.

    python benchmarks/cross_image.py [--data glyphs] [--root FOLDER] [--seeds 3]
    python benchmarks/cross_image.py --quick              # fewer classes, one seed: minutes on two cores

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class. For each seed two encoders are trained alike, one by unconditional similarities
alone (conditional_weight = 0, which is the baseline), one by cross-image attention; the epoch is chosen on held-out
training classes. Scores are of unconditional embeddings of the test classes, searched among themselves; a further row
ranks the nearest anew by conditional similarity. Rows are added to benchmarks/results/cross_image.json as they come,
what is there is not measured again, and an interrupted training goes on with the same command. The table goes to
cross_image.md and to docs/cross_image.md, figures of seed 0 to benchmarks/results/cross_image/: gradients at the
encoder's output, attention maps, parts.
"""

import argparse
import json
import os
import shutil
from pathlib import Path

import numpy as np

import cross_image_figures as pictures
from baselines_small import load, some_classes
from entourage.encoder_training import CHECKPOINT
from entourage.errors import EntourageError
from entourage.evaluation import evaluate_embeddings, evaluate_ranking
from entourage.progress import terminal_progress
from entourage.settings import CrossImageSettings, from_pairs, from_toml, to_dict
from entourage.systems.cross_image import encode, load_blocks, rerank, train_cross_image
from entourage.systems.cross_image.probe import median_magnitude, read_gradients
from entourage.values import Embeddings
from markers import fill

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "cross_image.md"
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
SYSTEMS = {"baseline": 0.0, "cross-image": 0.5}  # and the share of conditional similarities in the loss
SHOWN = "glyphs"  # the dataset whose figures the page shows
RERANKED = "cross-image, re-ranked"
EPOCHS, QUICK_CLASSES, QUICK_EPOCHS = 20, 40, 3
NEGATIVES = 16  # each image is conditioned on its class and so many others: half the time of all pairs
TOP = 20  # how many are ranked anew, at least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="glyphs", help="a dataset, or a folder under --root")
    parser.add_argument("--root", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0 (3; 1 with --quick)")
    parser.add_argument("--epochs", type=int, help=f"of both, at most ({EPOCHS}; {QUICK_EPOCHS} with --quick)")
    parser.add_argument("--max-classes", type=int, help=f"of each split (all; {QUICK_CLASSES} with --quick)")
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", help="name=value for any setting of both"
    )
    parser.add_argument("--quick", action="store_true", help="smaller, written to cross_image_quick.*")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose table is filled, but for --quick")
    options = with_defaults(parser.parse_args())
    try:
        training, test = (some_classes(load(options, split), options.max_classes) for split in ("train", "test"))
        measure_all(options, training, test)
    except EntourageError as error:
        raise SystemExit(str(error)) from error


def with_defaults(options):
    options.seeds = options.seeds or (1 if options.quick else 3)
    options.epochs = options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS)
    options.max_classes = options.max_classes or (QUICK_CLASSES if options.quick else None)
    return options


def measure_all(options, training, test) -> None:
    file = options.out / f"cross_image{'_quick' if options.quick else ''}.json"
    place = file.with_suffix("")  # the folder of the figures
    results = Results(file, options.data, protocol(training, test, settings_of(options, training, 0, 0.0)))
    with terminal_progress(log=True) as progress:
        for seed in range(options.seeds):
            for name, weight in SYSTEMS.items():
                if results.has(name, seed):
                    continue
                settings = settings_of(options, training, seed, weight)
                figures = place / options.data if seed == 0 and weight else None
                run = place / f"{options.data}_{name}_{seed}.run"
                measured = measure(training, test, settings, run, figures, progress)
                results.add(seed, name, *measured)
                shutil.rmtree(run)
                if not options.quick:
                    fill(options.page, "cross-image", results.table())
    if results.gradients().keys() == SYSTEMS.keys():
        pictures.gradient_figure(results.gradients(), place / f"{options.data}_gradients.png", options.data)
        if not options.quick and options.data == SHOWN:
            show(place, options.page.parent / "images")
    print(results.table())
    print(f"figures are in {place}")


def show(figures: Path, images: Path) -> None:
    """Copy the figures that the page shows beside it."""
    images.mkdir(exist_ok=True)
    for name in ("attention_1", "gradients", "parts"):
        found = figures / f"{SHOWN}_{name}.png"
        if found.exists():
            shutil.copyfile(found, images / f"cross_image_{name}.png")


# ---- measuring ---------------------------------------------------------------------------------------------------


def settings_of(options, images, seed: int, weight: float) -> CrossImageSettings:
    grey = images.picture(0).mode == "L"
    chosen = {
        "encoder": "small" if grey else "small-rgb",
        "epochs": options.epochs,
        "patience": options.epochs,  # equal epochs: neither stops early
        "negatives": NEGATIVES,
        "seed": seed,
        "conditional_weight": weight,
    }
    finer = ["encoder_options.last_stride=1"] if grey else []  # maps of 8 x 8 places either way
    return from_toml(CrossImageSettings, None, chosen | from_pairs([*finer, *options.settings]))


def measure(
    training, test, settings: CrossImageSettings, run: Path, figures: Path | None, progress
) -> tuple[dict, list]:
    """(row of the table -> metric -> score on the test classes, what the gradient probe counted).

    run: the folder of the training, which goes on with what an interrupted one has left there.
    """
    interrupted = (run / CHECKPOINT).exists()
    encoder, history = train_cross_image(training, settings, run_folder=run, resume=interrupted, progress=progress)
    blocks, gradients = load_blocks(run / "cross_image"), read_gradients(run)
    encoded = encode(encoder, blocks, test, progress=progress)
    items = Embeddings.from_vectors(encoded.vectors.numpy(), test.ids, test.labels)
    scores = {"unconditional": evaluate_embeddings(items, nmi=False, progress=progress).metrics}
    if settings.conditional_weight:
        scores["re-ranked"] = reranked_scores(blocks, encoded, items, progress)
    if figures:
        pictures.draw_all(figures, encoder, blocks, encoded, test, progress)
    kept = {"epoch": history.best_epoch, "epochs": history.epoch}
    return {name: {metric: values[metric] for metric in METRICS} | kept for name, values in scores.items()}, gradients


def reranked_scores(blocks, encoded, items: Embeddings, progress) -> dict[str, float]:
    def ranked(_, k: int):
        found = rerank(blocks, encoded, m=min(max(k, TOP), len(items) - 1), progress=progress)
        return [(slice(0, len(items)), found)]

    return {name: float(values.mean()) for name, values in evaluate_ranking(items, ranked).items()}


def protocol(training, test, settings: CrossImageSettings) -> dict:
    said = {
        name: f"{len(images)} pictures of {len(np.unique(images.labels))} classes"
        for name, images in (("training", training), ("test", test))
    }
    varied = ("seed", "workers", "conditional_weight")
    return said | {"settings": {name: value for name, value in to_dict(settings).items() if name not in varied}}


# ---- results -----------------------------------------------------------------------------------------------------


class Results:
    """Scores of all datasets in one file, the gradients of seed 0 in another; both replaced after every encoder."""

    def __init__(self, file: Path, dataset: str, measured_under: dict):
        self.file, self.dataset = file, dataset
        self.gradient_file = file.with_name(f"{file.stem}_gradients.json")
        self.all = _read(file)
        self.mine = self.all.setdefault(dataset, {"protocol": measured_under, "scores": {}})
        if self.mine["protocol"] != measured_under:
            raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")

    def has(self, system: str, seed: int) -> bool:
        return str(seed) in self.mine["scores"].get(system, {})

    def add(self, seed: int, system: str, scores: dict, gradients: list) -> None:
        medians = [
            [entry["epoch"], *(median_magnitude(entry[name]) for name in ("with_blocks", "without_blocks"))]
            for entry in gradients
        ]
        for name, values in scores.items():
            row = RERANKED if name == "re-ranked" else system
            self.mine["scores"].setdefault(row, {})[str(seed)] = values
        self.mine.setdefault("median log10 gradient by epoch, with and without the blocks", {}).setdefault(system, {})[
            str(seed)
        ] = medians
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if seed == 0:
            counted = _read(self.gradient_file)
            counted.setdefault(self.dataset, {})[system] = gradients
            self.gradient_file.write_text(json.dumps(counted) + "\n")
        self.file.write_text(json.dumps(self.all, indent=1) + "\n")
        self.file.with_suffix(".md").write_text(self.table())

    def gradients(self) -> dict[str, list]:
        return _read(self.gradient_file).get(self.dataset, {})

    def table(self) -> str:
        """Mean ± standard deviation over the seeds, in percent, of every system on every dataset."""
        columns = [f"{dataset} {name}" for dataset in self.all for name in METRICS.values()]
        lines = [f"| encoder | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for row in (*SYSTEMS, RERANKED):
            cells = [_cell(result["scores"].get(row, {}), metric) for result in self.all.values() for metric in METRICS]
            lines.append(f"| {row} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


def _cell(by_seed: dict, metric: str) -> str:
    values = [100 * scores[metric] for scores in by_seed.values()]
    if not values:
        return ""
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


def _read(file: Path) -> dict:
    return json.loads(file.read_text()) if file.exists() else {}


if __name__ == "__main__":
    main()
