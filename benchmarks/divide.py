"""Divide and conquer against its baseline, on unseen classes: scores, Table S1 and Figures S1 and S2 in small.

    python benchmarks/divide.py [--data glyphs] [--root FOLDER] [--seeds 3] [--epochs 20]
    python benchmarks/divide.py --quick          # fewer classes, one seed: minutes on two cores

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class, or with vectors.npy and labels.npy. For each seed encoders are trained on the
training classes, by the same loss, in batches of the same size, for the same number of epochs: the baseline on the
whole embedding, the others divided among learners, in the three phases of the authors' code or in two halves, with
batch norms that learn or that keep their statistics. The method wants clusters that mean something, so that all begin
with one encoder, trained like the baseline for --start epochs (the paper begins with a pretrained net); 0 for a new
one. Of each the epoch with the best MAP@R of held-out training classes is kept; scores are of the test classes, items
searched among themselves. The baseline's embedding is cut into slices like the learners'. --rows measures some alone.

Each seed is added to benchmarks/results/divide.json as it is done, and tables and figures are made anew: divide.md,
divide_DATA_first.png (Fig. S2), divide_DATA_only.png (Fig. S1). Without --quick the tables fill their place in
docs/divide_and_conquer.md too. A seed that is there already is not measured again.
"""

from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from entourage.encoders.embedding import embed
from entourage.encoders.saving import save_encoder, small_encoder_for
from entourage.evaluation import evaluate_embeddings
from entourage.figures import save
from entourage.figures.slices import draw_first_slices, draw_specialities
from entourage.runtime.progress import terminal_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.divide_and_conquer.analysis import SliceScores, score_slices
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.divide_and_conquer.training import train_divided
from entourage.values import Embeddings
from markers import fill
from small_scale import SHOWN, Results, arguments, cell, of_row, parser_of, protocol, run, show, splits

PAGE = Path(__file__).parent.parent / "docs" / "divide_and_conquer.md"
HALVES = {"slice_share": 0.5, "conquer_share": 0.5, "cluster_starts": 1, "cluster_iterations": 300}
FROZEN = {"freeze_batch_norm": "statistics"}
MODELS: dict[str, dict] = {  # what differs from the settings of all
    "baseline": {},
    "baseline, frozen norm": FROZEN,
    "divided 50/50": HALVES,
    "divided": {},
    "divided, frozen norm": FROZEN,
}
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
RECALL_AT = (1, 2, 4, 8)  # Figure S2
FULL, QUICK = {"epochs": 12, "start": 8}, {"epochs": 6, "start": 3, "max_classes": 60}


def main() -> None:
    parser = parser_of(__doc__, PAGE)
    parser.add_argument("--learners", type=int, default=DivideSettings.learners, help="slices, and clusters")
    parser.add_argument("--start", type=int, help="epochs of the encoder that both begin with (8; 3 with --quick)")
    parser.add_argument("--lost-at", type=int, default=5, help="others find nothing among so many (Fig. S1)")
    parser.add_argument("--rows", nargs="+", default=list(MODELS), choices=list(MODELS), help="which encoders")
    options = arguments(parser, "divide", FULL, QUICK)
    training, test = splits(options)
    with terminal_progress() as progress, TemporaryDirectory() as place:
        for seed in range(options.seeds):
            settings = settings_of(training, seed, options)
            said = {"start": options.start, "lost_at": options.lost_at}
            varied = {name for changed in MODELS.values() for name in changed}
            results = Results(options.file, options.data, protocol(training, test, settings, varied, **said))
            wanted = [model for model in options.rows if not results.has(seed, model)]
            if wanted and options.start:
                settings = begun(training, settings, options.start, Path(place), progress)
            for model in wanted:
                items = embedded(model, training, test, replace(settings, **MODELS[model]), progress)
                chosen = {"recall_at": RECALL_AT, "lost_at": options.lost_at}
                slices = score_slices(items, options.learners, progress=progress, **chosen)
                results.add(seed, measured(items, slices, progress), model)
                if model == "divided" and seed == 0 and hasattr(test, "picture"):
                    draw_only(options.file, options.data, test, slices.only, options.lost_at)
            report(results, options.data, options.page)
    if options.data == SHOWN:
        show(
            options.out,
            {f"divide_{SHOWN}_{name}.png": f"divide_{name}.png" for name in ("first", "only")},
            options.page,
        )
    print(options.file.with_suffix(".md").read_text())


# ---- measuring ---------------------------------------------------------------------------------------------------


def settings_of(images, seed: int, options) -> DivideSettings:
    """No encoder ends before all its epochs: both have as many."""
    epochs = {"epochs": options.epochs, "patience": max(1, options.epochs)}
    return DivideSettings(encoder=small_encoder_for(images), learners=options.learners, seed=seed, **epochs)


def begun(training, settings: DivideSettings, epochs: int, place: Path, progress) -> DivideSettings:
    """The same settings, with an encoder to begin with that was trained like the baseline."""
    folder = place / str(settings.seed)
    first = baseline_settings(replace(settings, epochs=epochs, patience=epochs))
    save_encoder(folder, train_baseline(training, first, progress=progress)[0])
    return replace(settings, encoder=str(folder), encoder_options={})


def baseline_settings(settings: DivideSettings) -> BaselineSettings:
    return BaselineSettings(**{field.name: getattr(settings, field.name) for field in fields(BaselineSettings)})


def embedded(model: str, training, test, settings: DivideSettings, progress) -> Embeddings:
    """The test classes by an encoder trained in one of the ways, with settings that are otherwise the same."""
    if model.startswith("divided"):
        encoder, _, _ = train_divided(training, settings, progress=progress)
    else:
        encoder, _, _ = train_baseline(training, baseline_settings(settings), progress=progress)
    return Embeddings.from_vectors(embed(encoder, test, progress=progress), test.ids, test.labels)


def measured(items: Embeddings, slices: SliceScores, progress) -> dict:
    values = evaluate_embeddings(items, nmi=False, progress=progress).metrics
    return {metric: values[metric] for metric in METRICS} | {
        "alone": slices.alone[1],
        "first": {str(k): recalls for k, recalls in slices.first.items()},
        "correlation": slices.correlation,
        "only": [len(rows) for rows in slices.only],
    }


# ---- results -----------------------------------------------------------------------------------------------------


def report(results: Results, dataset: str, page: Path | None) -> None:
    """Tables of all datasets, the figure of this one, and the page's place for the tables."""
    tables = [slices_table(name, result) for name, result in results.all.items()]
    text = "\n".join([results.table(("encoder",), MODELS, METRICS), *tables])
    file = results.file
    file.with_suffix(".md").write_text(text)
    first = {
        model: {k: mean_of(by_seed, lambda scores, k=k: scores["first"][str(k)]).tolist() for k in RECALL_AT}
        for model, by_seed in results.own["scores"].items()
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
    models = [model for model in MODELS if of_row(result, model)]
    lines = [f"| {dataset}, learner or slice | {' | '.join(models)} | dimensions |", "|---" * (len(models) + 2) + "|"]
    for name, value, form, dimensions in rows:
        cells = [cell(of_row(result, model), value, form) for model in models]
        lines.append(f"| {name} | {' | '.join(cells)} | {dimensions} |")
    return "\n".join(lines) + "\n"


def mean_of(by_seed: dict, value) -> np.ndarray:
    return np.mean([value(scores) for scores in by_seed.values()], axis=0)


if __name__ == "__main__":
    run(main)
