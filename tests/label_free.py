"""The path from a file of vectors to refined vectors, scores, pictures and a report, in a process of its own.

    python label_free.py OUT/with      # torch is loaded from the start
    python label_free.py OUT/without   # neither torch nor anything else that learns can be imported
    python label_free.py OUT/lean      # nothing can be that an extra brings: no pictures, no reports, no .parquet

That folder gets what the commands write; what they print, and how each ended, is in its outcomes.json. They read the
folder that this is started in.
"""

import json
import shlex
import sys
from pathlib import Path

LEARNING = {"faiss", "huggingface_hub", "pytorch_metric_learning", "torch", "transformers"}
OPTIONAL = LEARNING | {"PIL", "fastapi", "ipywidgets", "jinja2", "matplotlib", "pandas", "pyarrow", "tqdm", "uvicorn"}

# {out} is the folder for what is written; what stands beside it is read.
COMMANDS = {
    "doctor": "doctor vectors.npy --json",
    "doctor with labels": "doctor vectors.npy --labels labels.npy --json",
    "refine": "refine vectors.npy --out {out}/refined.npy --json",
    "refine against a gallery": "refine queries.npz --context gallery.npz --out {out}/queries.npz "
    "--context-out {out}/gallery.npz --json",
    "refine by a model": "refine vectors.npy --model model --out {out}/by-model.npy --json",
    "refine and keep": "refine vectors.npy --labels labels.npy --pictures photos --split train,test --run {out}/run",
    "rerank": "rerank queries.npz --gallery gallery.npz --candidates 40 --out {out}/lists.npz --json",
    "rerank by a model": "rerank vectors.npy --gallery vectors.npy --model model --out {out}/by-model.csv --json",
    "evaluate": "evaluate vectors.npy --labels labels.npy --json",
    "compare": "compare vectors.npy --labels labels.npy --methods {methods}",  # all that do not learn with torch
    "plot drift": "plot drift {out}/run --out {out}/drift.png",
    "plot query": "plot query {out}/run --out {out}/query.png",
    "plot sheet": "plot sheet {out}/run --out {out}/sheet.png",
    "plot steps": "plot steps {out}/run --out {out}/steps.png",
    "report": "report {out}/run",
}
NEED_TRAINING = {
    "fit": "fit vectors.npy --labels labels.npy --out {out}/model",
    "train": "train photos --out {out}/trained",
    "embed": "embed photos --model trained --out {out}/embedded.npz",
    "demo": "demo --quick --out {out}/demo",
    "compare all": "compare vectors.npy --labels labels.npy",
}
# What an installation without extras refuses, and the extra that it names.
NEED_AN_EXTRA = {
    "plot": ("plot drift {out}/run --out {out}/drift.png", "figures"),
    "report": ("report {out}/run", "figures"),
    "parquet in": ("doctor vectors.parquet", "parquet"),
    "parquet out": ("rerank queries.npz --gallery gallery.npz --out {out}/lists.parquet", "parquet"),
    "a folder of parquet": ("refine photos --out {out}/refined", "parquet"),
    "explore": ("explore {out}/run", "explorer"),
    "serve": ("serve --gallery {out}/gallery", "serve"),
}
DRAWN = ("plot", "report")


class Absent:
    """Stands before Python's own finders: some libraries are not installed, and who asked for them is noted."""

    def __init__(self, libraries):
        self.libraries, self.asked_for = libraries, []

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.libraries:
            self.asked_for.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run_commands(commands: dict[str, str], out: Path) -> dict[str, dict]:
    from typer.testing import CliRunner

    from entourage.cli import app
    from entourage.comparison.methods import METHODS
    from entourage.runtime import progress

    progress.SILENT_SECONDS = 3600  # lines of progress depend on how long the work takes
    methods = ",".join(name for name, spec in METHODS.items() if spec.learns_with is None)
    outcomes = {}
    for name, line in commands.items():
        ended = CliRunner().invoke(app, shlex.split(line.format(out=out, methods=methods)))
        error = "" if ended.exception is None else repr(ended.exception)
        outcomes[name] = {"code": ended.exit_code, "out": ended.stdout, "err": ended.stderr, "exception": error}
    return outcomes


def use_the_library(out: Path) -> None:
    import numpy as np

    from entourage import ContextRefiner, evaluate

    vectors, labels = np.load("vectors.npy"), np.load("labels.npy")
    refined = ContextRefiner().fit_transform(vectors)
    np.save(out / "by-library.npy", refined)
    np.save(out / "nmi.npy", evaluate(refined, labels).metrics["nmi"])


def refusal_of_the_library() -> str:
    import numpy as np

    from entourage import ContextRefiner
    from entourage.errors import MissingExtra

    try:
        ContextRefiner().fit(np.load("vectors.npy"), np.load("labels.npy"))
    except MissingExtra as error:
        return str(error)
    return ""


def main(out: Path) -> None:
    out.mkdir()
    absent, commands = Absent(OPTIONAL if out.name == "lean" else LEARNING), dict(COMMANDS)
    if out.name == "with":
        import torch  # noqa: F401
    else:
        sys.meta_path.insert(0, absent)
    if out.name == "lean":
        commands = {name: line for name, line in COMMANDS.items() if name.split()[0] not in DRAWN}
        commands |= {"keep": "refine vectors.npy --labels labels.npy --run {out}/run"}
        commands |= {name: line for name, (line, _) in NEED_AN_EXTRA.items()}
    outcomes = run_commands(commands, out)
    use_the_library(out)
    asked_for = list(absent.asked_for)
    if out.name == "without":
        outcomes |= run_commands(NEED_TRAINING, out)
        outcomes["library"] = refusal_of_the_library()
    (out / "outcomes.json").write_text(json.dumps({"outcomes": outcomes, "asked_for": asked_for}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
