"""What the small-scale benchmarks share: their options, their data, and results that are written as they come.

--data is a dataset of `entourage datasets`, or a folder NAME or NAME/images under --root (or the environment variable
ENTOURAGE_DATA) with one folder a class, or with vectors.npy and labels.npy.
"""

import argparse
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from entourage import data
from entourage.errors import EntourageError
from entourage.runtime.config import to_dict
from entourage.stores import whole_file

__all__ = [
    "SHOWN",
    "Results",
    "arguments",
    "cell",
    "of_row",
    "parser_of",
    "protocol",
    "read_json",
    "run",
    "show",
    "splits",
    "write_json",
]

RESULTS = Path(__file__).parent / "results"
SHOWN = "glyphs"  # the dataset whose figures the pages show
_VARIED = ("seed", "workers")


# ---- options -----------------------------------------------------------------------------------------------------


def parser_of(description: str, page: Path | None = None) -> argparse.ArgumentParser:
    """The options that all have; page: the one whose tables are filled, except with --quick."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="glyphs", help="a dataset, or a folder under --root")
    parser.add_argument("--root", default=os.environ.get("ENTOURAGE_DATA"), help="folder of datasets")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0 (3; 1 with --quick)")
    parser.add_argument("--epochs", type=int, help="of every training")
    parser.add_argument("--max-classes", type=int, help="of each split")
    parser.add_argument("--quick", action="store_true", help="fewer classes and epochs, one seed; written apart")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    if page is not None:
        parser.add_argument("--page", type=Path, default=page, help="the page whose tables are filled, but for --quick")
    return parser


def arguments(parser: argparse.ArgumentParser, name: str, full: dict, quick: dict) -> argparse.Namespace:
    """The options given, the others as `quick` or `full` has; `file` is where results go, `page` what they fill."""
    options = parser.parse_args()
    for option, value in ({"seeds": 1} | quick if options.quick else {"seeds": 3, "max_classes": None} | full).items():
        if getattr(options, option, None) is None:
            setattr(options, option, value)
    options.file = options.out / f"{name}{'_quick' if options.quick else ''}.json"
    options.page = None if options.quick else getattr(options, "page", None)
    return options


def run(main: Callable[[], None]) -> None:
    """A command whose errors of use are a sentence."""
    try:
        main()
    except EntourageError as error:
        raise SystemExit(str(error)) from error


def show(place: Path, figures: dict[str, str], page: Path | None) -> None:
    """Copy figures of that place, under names of their own, to the images beside the page that shows them."""
    if page is None:
        return
    images = page.parent / "images"
    images.mkdir(exist_ok=True)
    for name, shown_as in figures.items():
        if (place / name).exists():
            shutil.copyfile(place / name, images / shown_as)


# ---- data --------------------------------------------------------------------------------------------------------


def splits(options: argparse.Namespace) -> tuple:
    """The training and the test set, of options.max_classes classes each, evenly over the sorted ones."""
    return tuple(_some_classes(_load(options, split), options.max_classes) for split in ("train", "test"))


def _load(options: argparse.Namespace, split: str):
    if options.data == "glyphs":
        return data.load("glyphs", split, max_classes=options.max_classes)  # only what is asked for is drawn
    if options.data in data.DATASETS:
        return data.load(options.data, split, options.root)
    folder = Path(options.root or ".") / options.data
    if (folder / "vectors.npy").is_file() and not (folder / "images").is_dir():
        return data.load(folder / "vectors.npy", split, labels=str(folder / "labels.npy"))
    return data.load(folder / "images" if (folder / "images").is_dir() else folder, split)


def _some_classes(items, count: int | None):
    classes = np.unique(items.labels)
    if count is None or count >= len(classes):
        return items
    chosen = classes[np.linspace(0, len(classes) - 1, count).round().astype(int)]
    return items.take(np.flatnonzero(np.isin(items.labels, chosen)))


# ---- results -----------------------------------------------------------------------------------------------------


def protocol(training, test, settings, varied: Iterable[str] = (), **more) -> dict:
    """What was measured on, and every setting that is the same for all rows."""
    what = "pictures" if hasattr(training, "picture") else "items"
    said = {
        name: f"{len(items)} {what} of {len(np.unique(items.labels))} classes"
        for name, items in (("training", training), ("test", test))
    }
    same = {name: value for name, value in to_dict(settings).items() if name not in {*_VARIED, *varied}}
    return said | more | {"settings": same}


class Results:
    """Scores of all datasets in one file: {dataset: {"protocol": ..., "scores": {row: {seed: {metric: value}}}}}.

    A row may have a name of several parts, each a level of its own. Scores measured under another protocol are never
    mixed with these.
    """

    def __init__(self, file: Path, dataset: str, measured_under: dict):
        self.file, self.dataset, self.measured_under = file, dataset, measured_under
        self.all = read_json(file)
        if self.own["protocol"] != measured_under:
            raise SystemExit(f"{file} holds {dataset} under another protocol; delete it there to measure anew")

    @property
    def own(self) -> dict:
        """Of this dataset."""
        return self.all.setdefault(self.dataset, {"protocol": self.measured_under, "scores": {}})

    def has(self, seed: int, *row: str) -> bool:
        return str(seed) in of_row(self.own, *row)

    def add(self, seed: int, values: dict, *row: str, section: str = "scores") -> None:
        self.all = read_json(self.file)  # another run may have added to it meanwhile
        place = self.own.setdefault(section, {})
        for part in row:
            place = place.setdefault(part, {})
        place[str(seed)] = values
        write_json(self.file, self.all)

    def table(
        self, first: tuple[str, ...], rows: Iterable, metrics: dict[str, str], *, within: str | None = None
    ) -> str:
        """Rows by metrics of every dataset, in percent; a row's name has a part for each title of `first`.

        within: the part of all their names that is not shown. Rows and datasets without any score are left out.
        """
        hidden = () if within is None else (within,)
        datasets = {name: result for name, result in self.all.items() if of_row(result, *hidden)}
        columns = [f"{dataset} {title}" for dataset in datasets for title in metrics.values()]
        lines = [f"| {' | '.join([*first, *columns])} |", "|---" * (len(columns) + len(first)) + "|"]
        for row in rows:
            parts = (row,) if isinstance(row, str) else row
            cells = [
                cell(of_row(result, *hidden, *parts), lambda scores, metric=metric: 100 * scores[metric])
                for result in datasets.values()
                for metric in metrics
            ]
            if any(cells):
                lines.append(f"| {' | '.join([*parts, *cells])} |")
        return "\n".join(lines) + "\n"


def read_json(file: Path) -> dict:
    return json.loads(file.read_text()) if file.exists() else {}


def write_json(file: Path, content: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(file) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def of_row(result: dict, *row: str) -> dict:
    """seed -> metric -> value of a row of one dataset; empty where there is none."""
    place = result["scores"]
    for part in row:
        place = place.get(part, {})
    return place


def cell(by_seed: dict, value: Callable[[dict], float], form: str = ".1f") -> str:
    """Mean ± standard deviation over the seeds of value(scores)."""
    values = [value(scores) for scores in by_seed.values()]
    if not values:
        return ""
    return f"{np.mean(values):{form}}" + (f" ± {np.std(values, ddof=1):{form}}" if len(values) > 1 else "")
