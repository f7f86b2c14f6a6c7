"""Table 3 of *Attend to Context* in small: encoders trained by three losses, raw and refined, on unseen classes.

    python benchmarks/baselines_small.py [--data glyphs] [--root FOLDER] [--losses ms,margin,proxy-anchor] [--seeds 3]
    python benchmarks/baselines_small.py --quick          # fewer classes, one seed: minutes on two cores

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class. For each loss and seed an encoder is trained on the training classes, its epoch
chosen on some of them held out; a refiner is fitted to its embeddings of the training classes, by the relational recipe
and by the paper's; scores are of the test classes, items searched among themselves, context from the test items
without their labels. Rows are added to benchmarks/results/baselines_small.json as they come, what is there is not
measured again, and the table is written to baselines_small.md and, without --quick, to docs/training.md.
"""

from pathlib import Path

from entourage.encoders.embedding import embed
from entourage.encoders.saving import small_encoder_for
from entourage.evaluation import evaluate_embeddings
from entourage.refiner.recipes import RECIPES
from entourage.runtime.progress import terminal_progress
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings
from markers import fill
from small_scale import Results, arguments, parser_of, protocol, run, splits

PAGE = Path(__file__).parent.parent / "docs" / "training.md"
LOSSES = ("ms", "margin", "proxy-anchor")
METHODS = ("raw", "relational", "paper")
METRICS = {"recall@1": "R@1", "map@r": "MAP@R"}
FULL, QUICK = {"epochs": BaselineSettings.epochs}, {"epochs": 8, "max_classes": 60}


def main() -> None:
    parser = parser_of(__doc__, PAGE)
    parser.add_argument("--losses", default=",".join(LOSSES), help="names with commas between")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"of {', '.join(METHODS)}")
    options = arguments(parser, "baselines_small", FULL, QUICK)
    training, test = splits(options)
    with terminal_progress() as progress:
        for loss in options.losses.split(","):
            for seed in range(options.seeds):
                settings = BaselineSettings(small_encoder_for(training), loss=loss, seed=seed, epochs=options.epochs)
                results = Results(options.file, options.data, protocol(training, test, settings, varied=("loss",)))
                missing = [name for name in options.methods.split(",") if not results.has(seed, loss, name)]
                for method, values in measure(training, test, settings, missing, progress).items():
                    results.add(seed, values, loss, method)
                report(results, options.page)
    print(options.file.with_suffix(".md").read_text())


def measure(training, test, settings: BaselineSettings, methods: list[str], progress) -> dict[str, dict[str, float]]:
    """Method -> metric -> score on the test classes."""
    if not methods:
        return {}
    encoder, _, _ = train_baseline(training, settings, progress=progress)
    seen, unseen = (
        Embeddings.from_vectors(embed(encoder, images, progress=progress), images.ids, images.labels)
        for images in (training, test)
    )
    scores = {}
    for method in methods:
        items = unseen
        if method != "raw":
            refiner = RECIPES[method](random_state=settings.seed).fit(seen, progress=progress)
            items = refiner.transform(unseen, context=unseen, progress=progress)
        values = evaluate_embeddings(items, nmi=False, progress=progress).metrics
        scores[method] = {metric: values[metric] for metric in METRICS}
    return scores


def report(results: Results, page: Path | None) -> None:
    """Every loss, raw and refined, on every dataset."""
    losses = dict.fromkeys(loss for result in results.all.values() for loss in result["scores"])
    rows = [(loss, method) for loss in losses for method in METHODS]
    table = results.table(("loss", "embeddings"), rows, METRICS)
    results.file.with_suffix(".md").write_text(table)
    if page:
        fill(page, "baselines", table)


if __name__ == "__main__":
    run(main)
