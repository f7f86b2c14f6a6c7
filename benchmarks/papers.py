"""What is kept of the papers' tables at small scale, and the pages that show it.

    entourage reproduce all --small [--data omniglot]     # measures: hours on two cores
    python benchmarks/papers.py --take runs/reproduce/small
    python benchmarks/papers.py                           # writes the pages from what is kept

--take copies TABLE.json and the pictures of each table into benchmarks/results/papers. Then docs/papers.md is written
anew, with the tables and pictures on the pages of the systems; a table stands between `<!-- TABLE: begin -->` and
`<!-- TABLE: end -->`.
"""

import argparse
import shutil
from pathlib import Path

from entourage.runs.reproduce.markdown import measured_text
from entourage.runs.reproduce.page import papers_page, results_of
from entourage.runs.reproduce.scale import Scale
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
    """Copy the results and the pictures of every table that is there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in tables():
        for path in (*folder.glob(f"{name}.json"), *folder.glob(f"{name}-*.png")):
            shutil.copyfile(path, KEPT / path.name)


def of_table(name: str) -> str:
    """What is kept of a table, every dataset beside the others."""
    table = tables("small")[name]
    return measured_text(table, results_of(table, KEPT), Scale("small"))


if __name__ == "__main__":
    main()
