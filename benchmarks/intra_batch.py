"""The tables of *Intra-Batch Connections* in small, on unseen classes.

    python benchmarks/intra_batch.py [--data glyphs] [--root FOLDER] [--parts losses,contexts,...] [--seeds 3]
    python benchmarks/intra_batch.py --quick          # fewer classes, one seed: minutes on two cores

losses      trained by cross-entropy alone, by the network's loss alone, by both; the network at test time   (Table 3)
contexts    where the network finds its contexts at test time; students of encoder and network               (Table 7)
ensembles   embeddings of 1, 2 and 5 networks one behind the other                                           (Table 8)
grid        message-passing steps and heads                                                                  (Figure 4)
sizes       dimensions of the embedding                                                                      (Table 4)

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class. Every encoder is trained for as many epochs; the one kept is chosen on training
classes held out. Scores are of the test classes, searched among themselves. Nothing is chosen on them: settings are the
defaults but for what a table varies. Scores go to benchmarks/results/intra_batch.json as they come, tables to
intra_batch.md and, without --quick, into docs/intra_batch.md; what is there already is not measured again.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from baselines_small import load, some_classes
from entourage.embedding import embed
from entourage.encoders import save_encoder
from entourage.errors import EntourageError
from entourage.evaluation import evaluate_embeddings
from entourage.progress import terminal_progress
from entourage.settings import to_dict
from entourage.settings.intra_batch import DISTILLATIONS, IntraBatchSettings, StudentSettings
from entourage.systems.intra_batch import fit_intra_batch
from entourage.systems.intra_batch.contexts import CONTEXTS
from entourage.systems.intra_batch.saving import NETWORK, save_network
from entourage.systems.intra_batch.student import train_student
from entourage.systems.intra_batch.test_time import refine_by_messages
from entourage.values import Embeddings
from markers import fill

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "intra_batch.md"
METRICS = {"recall@1": "R@1", "map@r": "MAP@R", "nmi": "NMI"}
LOSSES = {
    "cross-entropy alone": {"network_weight": 0.0},
    "network's loss alone": {"auxiliary_weight": 0.0},
    "both": {},
}
AT_TEST_TIME = "both, and the network at test time"
FULL = {
    "seeds": 3,
    "epochs": 20,
    "max_classes": None,
    "networks": 5,
    "ensembles": (1, 2, 5),
    "steps": (1, 2, 4),
    "heads": (1, 2, 8),
    "dims": (16, 32, 64, 128, 256),
}
QUICK = {
    "seeds": 1,
    "epochs": 4,
    "max_classes": 40,
    "networks": 2,
    "ensembles": (1, 2),
    "steps": (1, 2),
    "heads": (1, 2),
    "dims": (32, 128),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="glyphs", help="a dataset, or a folder under --root")
    parser.add_argument("--root", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--parts", default=",".join(PARTS), help="names with commas between")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0 (3; 1 with --quick)")
    parser.add_argument("--epochs", type=int, help="of every training (20; 4 with --quick)")
    parser.add_argument("--max-classes", type=int, help="of each split (all; 40 with --quick)")
    parser.add_argument("--quick", action="store_true", help="smaller, written to intra_batch_quick.*")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose tables are filled")
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else FULL).items():
        setattr(options, name, getattr(options, name, None) or value)
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        raise SystemExit(f"there is no part {unknown.pop()!r}; wanted some of {', '.join(PARTS)}")
    try:
        images = [some_classes(load(options, split), options.max_classes) for split in ("train", "test")]
    except EntourageError as error:
        raise SystemExit(str(error)) from error
    with terminal_progress(log=True) as progress, tempfile.TemporaryDirectory() as teachers:
        bench = Bench(options, *images, Path(teachers), progress)
        for part in options.parts.split(","):
            PARTS[part](bench)
    print(bench.results.file.with_suffix(".md").read_text())


# ---- the parts ---------------------------------------------------------------------------------------------------


def losses(bench: "Bench") -> None:
    for seed in range(bench.options.seeds):
        for row, changes in LOSSES.items():
            bench.measure("losses", row, seed, lambda s=seed, c=changes: bench.encoded(s, **c))
        bench.measure("losses", AT_TEST_TIME, seed, lambda s=seed: bench.refined(s, "reciprocal"))


def contexts(bench: "Bench") -> None:
    for seed in range(bench.options.seeds):
        bench.measure("contexts", "encoder alone", seed, lambda s=seed: bench.encoded(s))
        for by in CONTEXTS:
            bench.measure("contexts", by, seed, lambda s=seed, by=by: bench.refined(s, by))
        for lesson in DISTILLATIONS:
            bench.measure("contexts", f"student, {lesson}", seed, lambda s=seed, d=lesson: bench.student(s, d))


def ensembles(bench: "Bench") -> None:
    """Every network once the first of an ensemble; all of them together are one ensemble."""
    count = bench.options.networks
    for size in bench.options.ensembles:
        for first in range(count if size < count else 1):
            members = [(first + number) % count for number in range(size)]
            bench.measure("ensembles", str(size), first, lambda m=members: bench.joined(m))


def grid(bench: "Bench") -> None:
    for steps in bench.options.steps:
        for heads in bench.options.heads:
            for seed in range(bench.options.seeds):
                shape = {"steps": steps, "heads": heads}
                bench.measure("grid", f"{steps} x {heads}", seed, lambda s=seed, c=shape: bench.encoded(s, **c))


def sizes(bench: "Bench") -> None:
    for dim in bench.options.dims:
        for seed in range(bench.options.seeds):
            bench.measure("sizes", str(dim), seed, lambda s=seed, d=dim: bench.encoded(s, dim=d))


PARTS = {"losses": losses, "contexts": contexts, "ensembles": ensembles, "grid": grid, "sizes": sizes}
FIRST = {
    "losses": "trained by",
    "contexts": "test-time embeddings",
    "ensembles": "networks",
    "grid": "steps x heads",
    "sizes": "dimensions",
}


# ---- measuring ---------------------------------------------------------------------------------------------------


class Bench:
    """Trainings, each done once whatever number of rows it is measured for, and the scores they lead to."""

    def __init__(self, options, training, test, teachers: Path, progress):
        self.options, self.training, self.test = options, training, test
        self.teachers, self.progress = teachers, progress
        self.trained: dict = {}
        name = f"intra_batch{'_quick' if options.quick else ''}.json"
        self.results = Results(
            options.out / name, options.data, self.protocol(), None if options.quick else options.page
        )

    def measure(self, part: str, row: str, seed: int, items: Callable[[], Embeddings]) -> None:
        """Score what items() gives, unless that was done before."""
        if self.results.has(part, row, seed):
            return
        print(f"{part}: {row}, seed {seed}", file=sys.stderr)
        metrics = evaluate_embeddings(items(), seed=0, progress=self.progress).metrics
        self.results.add(part, row, seed, {metric: metrics[metric] for metric in METRICS})

    def encoded(self, seed: int, **changes) -> Embeddings:
        return self.run(seed, **changes)[0]

    def refined(self, seed: int, by: str) -> Embeddings:
        items, trained = self.run(seed)
        return refine_by_messages(trained, items, by, seed=seed, progress=self.progress)

    def joined(self, seeds: list[int]) -> Embeddings:
        """Unit vectors of several encoders one behind the other, as `entourage embed --model A --model B` has them."""
        of_each = [self.encoded(seed) for seed in seeds]
        vectors = np.hstack([items.vectors for items in of_each])
        return Embeddings.from_vectors(vectors, of_each[0].ids, of_each[0].labels)

    def student(self, seed: int, distillation: str) -> Embeddings:
        self.run(seed)
        chosen = StudentSettings(
            teacher=str(self.teachers / str(seed)), distillation=distillation, **self.encoder_settings(seed)
        )
        return self.embedded(train_student(self.training, chosen, progress=self.progress)[0])

    def run(self, seed: int, **changes) -> tuple:
        """(embeddings of the test classes, network) of one training; with no changes also kept as a teacher."""
        settings = self.settings(seed, **changes)
        key = json.dumps(to_dict(settings), sort_keys=True)
        if key not in self.trained:
            encoder, trained, _ = fit_intra_batch(self.training, settings, progress=self.progress)
            if settings == self.settings(seed):
                folder = self.teachers / str(seed)
                folder.mkdir()
                save_encoder(folder / "encoder", encoder)
                save_network(folder / NETWORK, trained)
            self.trained[key] = self.embedded(encoder), trained
        return self.trained[key]

    def settings(self, seed: int, **changes) -> IntraBatchSettings:
        return IntraBatchSettings(**(self.encoder_settings(seed) | changes))

    def encoder_settings(self, seed: int) -> dict:
        encoder = "small" if self.training.picture(0).mode == "L" else "small-rgb"
        epochs = self.options.epochs
        return {"encoder": encoder, "epochs": epochs, "patience": max(epochs, 1), "seed": seed}  # equal epochs for all

    def embedded(self, encoder) -> Embeddings:
        return Embeddings.from_vectors(
            embed(encoder, self.test, progress=self.progress), self.test.ids, self.test.labels
        )

    def protocol(self) -> dict:
        said = {
            name: f"{len(images)} pictures of {len(np.unique(images.labels))} classes"
            for name, images in (("training", self.training), ("test", self.test))
        }
        settings = to_dict(self.settings(0))
        return said | {"settings": {name: settings[name] for name in settings if name not in ("seed", "workers")}}


# ---- results -----------------------------------------------------------------------------------------------------


class Results:
    """Scores in a file, written as they come, with the tables beside it and in the documentation."""

    def __init__(self, file: Path, dataset: str, protocol: dict, page: Path | None):
        self.file, self.page = file, page
        self.all = json.loads(file.read_text()) if file.exists() else {}
        self.own = self.all.setdefault(dataset, {"protocol": protocol, "scores": {}})
        if self.own["protocol"] != protocol:
            raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")

    def has(self, part: str, row: str, seed: int) -> bool:
        return str(seed) in self.own["scores"].get(part, {}).get(row, {})

    def add(self, part: str, row: str, seed: int, scores: dict[str, float]) -> None:
        self.own["scores"].setdefault(part, {}).setdefault(row, {})[str(seed)] = scores
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.all, indent=1) + "\n")
        tables = {name: table(self.all, name) for name in PARTS}
        self.file.with_suffix(".md").write_text(
            "\n".join(f"## {name}\n\n{text}" for name, text in tables.items() if text)
        )
        if self.page:
            for name, text in tables.items():
                fill(self.page, f"intra_batch {name}", text)


def table(results: dict, part: str) -> str:
    """Mean ± standard deviation over the seeds, in percent, of every row of a part, on every dataset that has it."""
    datasets = [dataset for dataset, result in results.items() if part in result["scores"]]
    if not datasets:
        return ""
    columns = [f"{dataset} {name}" for dataset in datasets for name in METRICS.values()]
    lines = [f"| {FIRST[part]} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in dict.fromkeys(row for dataset in datasets for row in results[dataset]["scores"][part]):
        of_each = [results[dataset]["scores"][part].get(row, {}) for dataset in datasets]
        lines.append(f"| {row} | {' | '.join(_cell(scores, metric) for scores in of_each for metric in METRICS)} |")
    return "\n".join(lines) + "\n"


def _cell(by_seed: dict, metric: str) -> str:
    values = [100 * scores[metric] for scores in by_seed.values()]
    if not values:
        return ""
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
