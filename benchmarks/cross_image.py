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

import shutil
from pathlib import Path

import cross_image_figures as pictures
from entourage.encoders.saving import small_encoder_for
from entourage.evaluation import evaluate_embeddings, evaluate_ranking
from entourage.runtime.config import from_pairs, from_toml
from entourage.runtime.progress import terminal_progress
from entourage.stores.filenames import CHECKPOINT
from entourage.systems.cross_image.blocks import load_blocks
from entourage.systems.cross_image.encoding import encode
from entourage.systems.cross_image.probe import median_magnitude, read_gradients
from entourage.systems.cross_image.reranking import rerank
from entourage.systems.cross_image.settings import CrossImageSettings
from entourage.systems.cross_image.training import train_cross_image
from entourage.values import Embeddings
from markers import fill
from small_scale import SHOWN, Results, arguments, parser_of, protocol, read_json, run, show, splits, write_json

PAGE = Path(__file__).parent.parent / "docs" / "cross_image.md"
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
SYSTEMS = {"baseline": 0.0, "cross-image": 0.5}  # and the share of conditional similarities in the loss
RERANKED = "cross-image, re-ranked"
FULL, QUICK = {"epochs": 12}, {"epochs": 3, "max_classes": 40}
NEGATIVES = 16  # each image is conditioned on its class and so many others: half the time of all pairs
TOP = 20  # how many are ranked anew, at least


def main() -> None:
    parser = parser_of(__doc__, PAGE)
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", help="name=value for any setting of both"
    )
    options = arguments(parser, "cross_image", FULL, QUICK)
    training, test = splits(options)
    place = options.file.with_suffix("")  # the folder of the figures
    measured_under = protocol(training, test, settings_of(options, training, 0, 0.0), varied=("conditional_weight",))
    results = Results(options.file, options.data, measured_under)
    gradients = Gradients(options.file, options.data)
    with terminal_progress() as progress:
        for seed in range(options.seeds):
            for name, weight in SYSTEMS.items():
                if results.has(seed, name):
                    continue
                settings = settings_of(options, training, seed, weight)
                figures = place / options.data if seed == 0 and weight else None
                folder = place / f"{options.data}_{name}_{seed}.run"
                scores, counted = measure(training, test, settings, folder, figures, progress)
                gradients.add(results, seed, name, counted)
                if "re-ranked" in scores:
                    results.add(seed, scores["re-ranked"], RERANKED)
                results.add(seed, scores["unconditional"], name)  # the last, as it says that this training is done
                shutil.rmtree(folder)
                report(results, options.page)
    if gradients.own.keys() == SYSTEMS.keys():
        pictures.gradient_figure(gradients.own, place / f"{options.data}_gradients.png", options.data)
        if options.data == SHOWN:
            shown = {f"{SHOWN}_{name}.png": f"cross_image_{name}.png" for name in ("attention_1", "gradients", "parts")}
            show(place, shown, options.page)
    print(report(results, options.page))
    print(f"figures are in {place}")


def report(results: Results, page: Path | None) -> str:
    table = results.table(("encoder",), (*SYSTEMS, RERANKED), METRICS)
    results.file.with_suffix(".md").write_text(table)
    if page:
        fill(page, "cross-image", table)
    return table


# ---- measuring ---------------------------------------------------------------------------------------------------


def settings_of(options, images, seed: int, weight: float) -> CrossImageSettings:
    encoder = small_encoder_for(images)
    chosen = {
        "encoder": encoder,
        "epochs": options.epochs,
        "patience": options.epochs,  # equal epochs: neither stops early
        "negatives": NEGATIVES,
        "seed": seed,
        "conditional_weight": weight,
    }
    finer = ["encoder_options.last_stride=1"] if encoder == "small" else []  # maps of 8 x 8 places either way
    return from_toml(CrossImageSettings, None, chosen | from_pairs([*finer, *options.settings]))


def measure(
    training, test, settings: CrossImageSettings, run: Path, figures: Path | None, progress
) -> tuple[dict, list]:
    """(row of the table -> metric -> score on the test classes, what the gradient probe counted).

    run: the folder of the training, which goes on with what an interrupted one has left there.
    """
    interrupted = (run / CHECKPOINT).exists()
    encoder, history, _ = train_cross_image(training, settings, run_folder=run, resume=interrupted, progress=progress)
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


# ---- gradients ---------------------------------------------------------------------------------------------------


class Gradients:
    """What the probe counted: of seed 0 in a file of its own, of every seed the medians beside the scores."""

    def __init__(self, file: Path, dataset: str):
        self.file = file.with_name(f"{file.stem}_gradients.json")
        self.dataset = dataset

    @property
    def own(self) -> dict:
        return read_json(self.file).get(self.dataset, {})

    def add(self, results: Results, seed: int, system: str, counted: list) -> None:
        medians = [
            [entry["epoch"], *(median_magnitude(entry[name]) for name in ("with_blocks", "without_blocks"))]
            for entry in counted
        ]
        title = "median log10 gradient by epoch, with and without the blocks"
        results.add(seed, medians, system, section=title)
        if seed == 0:
            write_json(self.file, read_json(self.file) | {self.dataset: self.own | {system: counted}})


if __name__ == "__main__":
    run(main)
