"""What is kept of the papers' tables at small scale, and the pages that show it.

    entourage reproduce all --small [--data omniglot]     # measures: hours on two cores
    python benchmarks/papers.py --take runs/reproduce/small
    python benchmarks/papers.py                           # writes the pages from what is kept

--take brings TABLE.json and the pictures of each table into benchmarks/results/papers; those of --quick, of tables that
are not there, into its folder quick. What is there of other datasets stays; of a dataset that was measured anew nothing
does. Then docs/papers.md is written anew, with the tables and pictures on the pages of the systems; a table stands
between `<!-- TABLE: begin -->` and `<!-- TABLE: end -->`.
"""

import argparse
import json
import shutil
from pathlib import Path

from entourage.runs.reproduce.markdown import measured_text
from entourage.runs.reproduce.page import QUICK, papers_page, results_of
from entourage.runs.reproduce.scale import Scale, data_name
from entourage.runs.reproduce.tables import tables
from markers import fill

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "benchmarks" / "results" / "papers"
DOCS = ROOT / "docs"
IMAGES = {  # on the pages of the systems
    "divide-fig-s1-glyphs.png": "divide_only.png",
    "divide-fig-s2-glyphs.png": "divide_first.png",
    "cross-image-s1-glyphs.png": "cross_image_gradients.png",
}
SHOWN = {
    "training.md": ("attend-3",),
    "intra_batch.md": ("intra-batch-3", "intra-batch-4", "intra-batch-7", "intra-batch-8", "intra-batch-fig4"),
    "divide_and_conquer.md": ("divide-s1",),
    "cross_image.md": ("cross-image-s1",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--take", type=Path, metavar="FOLDER", help="keep the results of this folder")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the pages")
    options = parser.parse_args()
    if options.take:
        take(options.take)
    (options.docs / "papers.md").write_text(papers_page(KEPT), encoding="utf-8")
    for page, ids in SHOWN.items():
        for name in ids:
            fill(options.docs / page, name, of_table(name))
    for kept, shown in IMAGES.items():
        if (KEPT / kept).exists():
            shutil.copyfile(KEPT / kept, options.docs / "images" / shown)


def take(folder: Path) -> None:
    """Bring the results and the pictures of every table that is there."""
    for name in tables():
        if not (folder / f"{name}.json").exists():
            continue
        taken = json.loads((folder / f"{name}.json").read_text())
        quick = taken["scale"] == "quick"
        if quick and (
            (KEPT / f"{name}.json").exists() or any(KEPT.glob(f"{name}-*.png"))
        ):  # measured, or drawn, at small scale
            continue
        kept = KEPT / QUICK if quick else KEPT
        kept.mkdir(parents=True, exist_ok=True)
        file = kept / f"{name}.json"
        joined = joined_results(json.loads(file.read_text()) if file.exists() else {}, taken)
        file.write_text(json.dumps(joined, indent=1) + "\n")
        for pictures in taken["figures"].values():
            for picture in pictures:
                shutil.copyfile(folder / picture, kept / picture)


def joined_results(kept: dict, taken: dict) -> dict:
    """What is kept, with the datasets of `taken` in the place of their own; a dataset given by its path is its name."""
    joined = dict(taken)
    for part in ("protocol", "measured", "figures"):
        by_name = {data_name(dataset): values for dataset, values in taken[part].items()}
        joined[part] = kept.get(part, {}) | by_name
    return joined


def of_table(name: str) -> str:
    """What is kept of a table, every dataset beside the others."""
    table = tables("small")[name]
    return measured_text(table, results_of(table, KEPT), Scale("small"))


if __name__ == "__main__":
    main()
