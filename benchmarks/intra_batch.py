"""The tables of *Intra-Batch Connections* in small, on unseen classes.

    python benchmarks/intra_batch.py [--data glyphs] [--root FOLDER] [--parts losses,contexts,...] [--seeds 3]
    python benchmarks/intra_batch.py --quick          # fewer classes, one seed: minutes on two cores

losses      trained by cross-entropy alone, by the network's loss alone, by both; the network at test time   (Table 3)
controls    the same losses with like classifiers, and without messages
contexts    where the network finds its contexts at test time; students of encoder and network               (Table 7)
ensembles   embeddings of 1, 2 and 5 networks one behind the other                                           (Table 8)
grid        message-passing steps and heads                                                                  (Figure 4)
sizes       dimensions of the embedding                                                                      (Table 4)

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class. Every encoder is trained for as many epochs; the one kept is chosen on training
classes held out. Scores are of the test classes, searched among themselves. Nothing is chosen on them: settings are the
defaults but for what a table varies. Scores go to benchmarks/results/intra_batch.json as they come, tables to
intra_batch.md and, without --quick, into docs/intra_batch.md; what is there already is not measured again. The grid is
drawn as well, as intra_batch_DATA_grid.png.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from entourage.encoders import save_encoder
from entourage.encoders.embedding import embed
from entourage.encoders.saving import small_encoder_for
from entourage.evaluation import evaluate_embeddings
from entourage.figures import save
from entourage.figures.grid import draw_grid
from entourage.runtime.config import to_dict
from entourage.runtime.progress import terminal_progress
from entourage.stores.filenames import NETWORK
from entourage.systems.intra_batch.contexts import CONTEXTS
from entourage.systems.intra_batch.inference import refine_by_messages
from entourage.systems.intra_batch.saving import save_network
from entourage.systems.intra_batch.settings import DISTILLATIONS, IntraBatchSettings, StudentSettings
from entourage.systems.intra_batch.student import train_student
from entourage.systems.intra_batch.training import fit_intra_batch
from entourage.values import Embeddings
from markers import fill
from small_scale import Results, arguments, of_row, parser_of, protocol, run, splits

PAGE = Path(__file__).parent.parent / "docs" / "intra_batch.md"
METRICS = {"recall@1": "R@1", "map@r": "MAP@R", "nmi": "NMI"}
LOSSES = {
    "cross-entropy alone": {"network_weight": 0.0},
    "network's loss alone": {"auxiliary_weight": 0.0},
    "both": {},
}
CONTROLS = {
    "cross-entropy alone, behind the network's kind of classifier": {"network_weight": 0.0, "auxiliary_head": "neck"},
    "network's loss alone, every picture by itself": {"auxiliary_weight": 0.0, "messages": False},
    "both, behind the network's kind of classifier": {"auxiliary_head": "neck"},
}
AT_TEST_TIME = "both, and the network at test time"
FULL = {
    "epochs": 12,
    "networks": 5,
    "ensembles": (1, 2, 5),
    "steps": (1, 2, 4),
    "heads": (1, 2, 8),
    "dims": (16, 32, 64, 128, 256),
}
QUICK = {
    "epochs": 4,
    "max_classes": 40,
    "networks": 2,
    "ensembles": (1, 2),
    "steps": (1, 2),
    "heads": (1, 2),
    "dims": (32, 128),
}


def main() -> None:
    parser = parser_of(__doc__, PAGE)
    parser.add_argument("--parts", default=",".join(PARTS), help="names with commas between")
    options = arguments(parser, "intra_batch", FULL, QUICK)
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        raise SystemExit(f"there is no part {unknown.pop()!r}; wanted some of {', '.join(PARTS)}")
    images = splits(options)
    with terminal_progress() as progress, tempfile.TemporaryDirectory() as teachers:
        bench = Bench(options, *images, Path(teachers), progress)
        for part in options.parts.split(","):
            PARTS[part](bench)
            report(bench.results, options.page)
    draw_grids(bench.results)
    print(bench.results.file.with_suffix(".md").read_text())


# ---- the parts ---------------------------------------------------------------------------------------------------


def losses(bench: "Bench") -> None:
    for seed in range(bench.options.seeds):
        for row, changes in LOSSES.items():
            bench.measure("losses", row, seed, lambda s=seed, c=changes: bench.encoded(s, **c))
        bench.measure("losses", AT_TEST_TIME, seed, lambda s=seed: bench.refined(s, "reciprocal"))


def controls(bench: "Bench") -> None:
    for seed in range(bench.options.seeds):
        for row, changes in CONTROLS.items():
            bench.measure("controls", row, seed, lambda s=seed, c=changes: bench.encoded(s, **c))


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


PARTS = {
    "losses": losses,
    "controls": controls,
    "contexts": contexts,
    "ensembles": ensembles,
    "grid": grid,
    "sizes": sizes,
}
FIRST = {
    "losses": "trained by",
    "controls": "trained by",
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
        self.results = Results(options.file, options.data, protocol(training, test, self.settings(0)))

    def measure(self, part: str, row: str, seed: int, items: Callable[[], Embeddings]) -> None:
        """Score what items() gives, unless that was done before."""
        if self.results.has(seed, part, row):
            return
        print(f"{part}: {row}, seed {seed}", file=sys.stderr)
        metrics = evaluate_embeddings(items(), seed=0, progress=self.progress).metrics
        self.results.add(seed, {metric: metrics[metric] for metric in METRICS}, part, row)
        report(self.results, self.options.page)

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
            (encoder, *_), trained = fit_intra_batch(self.training, settings, progress=self.progress)
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
        encoder, epochs = small_encoder_for(self.training), self.options.epochs
        return {"encoder": encoder, "epochs": epochs, "patience": max(epochs, 1), "seed": seed}  # equal epochs for all

    def embedded(self, encoder) -> Embeddings:
        return Embeddings.from_vectors(
            embed(encoder, self.test, progress=self.progress), self.test.ids, self.test.labels
        )


def report(results: Results, page: Path | None) -> None:
    """A table for every part that has been measured."""
    texts = []
    for part, title in FIRST.items():
        rows = dict.fromkeys(row for result in results.all.values() for row in result["scores"].get(part, {}))
        if not rows:
            continue
        table = results.table((title,), rows, METRICS, within=part)
        texts.append(f"## {part}\n\n{table}")
        if page:
            fill(page, f"intra_batch {part}", table)
    results.file.with_suffix(".md").write_text("\n".join(texts))


def draw_grids(results: Results) -> None:
    """Recall@1 over steps and heads, a picture for every dataset that has it."""
    for dataset, result in results.all.items():
        rows = of_row(result, "grid")
        cells = {tuple(map(int, row.split(" x "))): recalls(by_seed) for row, by_seed in rows.items() if by_seed}
        if not cells:
            continue
        steps, heads = (sorted(set(values)) for values in zip(*cells, strict=True))
        of_cell = [[cells.get((step, head), [np.nan]) for head in heads] for step in steps]
        figure = draw_grid(
            [[np.mean(values) for values in row] for row in of_cell],
            steps,
            heads,
            "message-passing steps",
            "heads",
            f"{dataset}: recall@1, unseen classes",
            value_title="recall@1, %",
            spread=[[np.std(values, ddof=1) if len(values) > 1 else np.nan for values in row] for row in of_cell],
        )
        save(figure, results.file.with_name(f"{results.file.stem}_{dataset}_grid.png"))


def recalls(by_seed: dict) -> list[float]:
    return [100 * scores["recall@1"] for scores in by_seed.values()]


if __name__ == "__main__":
    run(main)
