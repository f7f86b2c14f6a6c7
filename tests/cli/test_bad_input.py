"""One sentence for each thing that can be wrong, exit code 2, and nothing left behind."""

import pickle
import shutil
from pathlib import Path

import pytest
from tests.cli.shop import FIT, check_refused, run

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

REFINE = "--model model --out out.npy"
BAD = {
    # vectors
    "NaN": (f"refine nan.npy {REFINE}", "nan.npy: row 3 of the vectors contains NaN"),
    "Inf": (f"refine inf.npy {REFINE}", "inf.npy: row 3 of the vectors contains inf"),
    "zero vector": (f"refine zero.npy {REFINE}", "zero.npy: row 3 of the vectors is all zeros"),
    "NaN in the context": (f"refine v.npy --context nan.npy {REFINE}", "nan.npy: row 3"),
    "NaN in the gallery": ("evaluate v.npz --gallery nan.npy --gallery-labels l.npy", "nan.npy: row 3"),
    "wrong dimension": (f"refine wide.npy {REFINE}", "have 16 dimensions, but this PaperRefiner was fitted on 8; use"),
    "wrong gallery": ("evaluate v.npz --gallery wide.npy --gallery-labels l.npy", "8 dimensions and the gallery 16"),
    "k >= N to refine": (f"refine few.npy {REFINE}", "5 vectors to find k ="),
    "k >= N to fit": (
        "fit v.npz --out out --recipe paper --neighbors 80",
        "n_neighbors is 80 but there are only 80 vectors",
    ),
    "repeated ids": ("evaluate twice.npz --labels l.npy", "twice.npz: id 0 appears 10 times (8 ids repeated)"),
    "ragged rows": ("evaluate ragged.parquet", "ragged.parquet: column `vector` has rows of 1 or 2 values"),
    "null id": ("refine null-id.parquet --model model --out out.parquet", "column `id` has 40 missing values"),
    # labels
    "too few labels": ("fit v.npy --labels short-labels.npy --out out", "79 labels for 80 vectors"),
    "no labels to fit": ("fit v.npy --out out", "v.npy has no labels of its own; wanted one per vector: give them"),
    "no labels": ("evaluate v.npy", "give them with --labels"),
    "no gallery labels": ("evaluate v.npz --gallery few.npy", "give them with --gallery-labels"),
    "labels of no gallery": ("evaluate v.npz --gallery-labels l.npy", "there is no gallery; add --gallery"),
    "null label": ("evaluate null-label.parquet", "null-label.parquet: column `label` has 40 missing values"),
    "unknown column": ("evaluate v.parquet --labels kind", "kind is neither a file nor a column of v.parquet"),
    "one class": ("fit v.npy --labels one-class.npy --out out", "1 class with two or more items"),
    "no usable class": ("fit v.npy --labels all-different.npy --out out", "0 classes with two or more items"),
    # files
    "missing file": (f"refine nothing.npy {REFINE}", "nothing.npy does not exist; check the path"),
    "missing labels": ("evaluate v.npy --labels nothing.csv", "nothing.csv does not exist; check the path"),
    "no vectors to refine": ("refine l.csv --out out.npy", "l.csv ends in .csv; vectors are read from"),
    "gallery of another size": ("refine v.npy --context wide.npy --out out.npy", "8 dimensions and the gallery 16"),
    "unknown suffix": ("evaluate l.csv", "l.csv ends in .csv; vectors are read from .npy, .npz, .parquet files"),
    "truncated .npy": (f"refine cut-v.npy {REFINE}", "cut-v.npy cannot be read as .npy"),
    "truncated .npz": ("evaluate cut-v.npz", "cut-v.npz cannot be read as .npz"),
    "truncated .parquet": ("evaluate cut-v.parquet", "cut-v.parquet cannot be read as .parquet"),
    "empty file": ("refine empty.npy --out out.npy", "empty.npy is empty, but a .npy file begins with"),
    "empty file for a model": (f"refine empty.npy {REFINE}", "empty.npy is empty, but a .npy file begins with"),
    "folder to examine": ("doctor model", "model is a folder; vectors are read from a single file here, .npy, .npz"),
    "text named .npy": (f"refine text.npy {REFINE}", "text.npy begins with b'0.1 0.'"),
    "pickled objects": (f"refine objects.npy {REFINE}", "objects.npy holds Python objects, which are never loaded"),
    "no model": ("refine v.npy --model nothing --out out.npy", "there is no folder 'nothing'; wanted"),
    "truncated model": ("refine v.npy --model cut-model --out out.npy", "the model in cut-model cannot be used"),
    "damaged config": ("refine v.npy --model bad-config --out out.npy", "the model in bad-config cannot be used"),
    # outputs
    "output in the way": ("refine v.npy --model model --out there.npy", "there.npy exists already"),
    "model in the way": ("fit v.npy --labels l.npy --out model", "model exists already"),
    "never ours to replace": ("fit v.npz --out precious --overwrite", "precious is a folder that Entourage did not"),
    "model over a file": ("fit v.npz --out l.csv --overwrite", "l.csv is a file, and is never replaced by a folder"),
    "model over here": ("fit v.npz --out . --overwrite", "the output is '.'; wanted the name of a file or folder"),
    "another format": ("refine v.npy --model model --out out.npz", "call it out.npy"),
    "no such folder": ("refine v.npy --model model --out new/out.npy", "the folder new does not exist"),
    "nothing to resume": ("fit v.npz --out out --recipe paper --resume", "there is no out.checkpoint to resume from"),
    # settings
    "gallery to nowhere": (f"refine v.npy {REFINE} --context-out g.npy", "there is no gallery; add --context or"),
    "gallery in the way": (f"refine v.npy {REFINE} --context few.npy --context-out there.npy", "there.npy exists"),
    "gallery of another format": (f"refine v.npy {REFINE} --context v.npz --context-out g.npy", "call it g.npz"),
    "confidence of no format": (f"refine v.npy {REFINE} --confidence sure.npy", "wanted a .csv file: choose another"),
    "confidence over a table": (
        f"refine v.npy {REFINE} --confidence l.csv --overwrite",
        "l.csv is not what Entourage writes under such a name",
    ),
    "two outputs, one name": (
        "refine v.npy --model model --context nan.npy --out out.npy --context-out ./out.npy",
        "--out is out.npy and --context-out is out.npy, which are one",
    ),
    "too many steps": (f"refine v.npy {REFINE} --steps 3", "steps is 3; wanted 0 ≤ steps ≤ 2"),
    "neighbours of a model": (f"refine v.npy {REFINE} --neighbors 9", "--neighbors is 9 but model was fitted with its"),
    "no neighbours to refine": ("refine v.npy --out out.npy --neighbors 0", "n_neighbors is 0; wanted a whole number"),
    "too many universal steps": ("refine v.npy --out out.npy --steps 6", "steps is 6; wanted 0 ≤ steps ≤ 5"),
    "unknown recipe": ("fit v.npz --out out --recipe fast", "recipe is 'fast'; wanted"),
    "no resuming": ("fit v.npz --out out --resume", "--resume continues the paper's recipe, but --recipe is relat"),
    "no passes": ("fit v.npz --out out --epochs 3", "--epochs is 3 but only --recipe paper uses it; leave it out"),
    "no head": ("fit v.npz --out out --out-dim 3", "--out-dim is 3 but only --recipe paper uses it"),
    "no neighbours": ("fit v.npz --out out --neighbors 0", "n_neighbors is 0; wanted a whole number, at least 1"),
    "no epochs": ("fit v.npz --out out --recipe paper --epochs 0", "epochs is 0; wanted a whole number, at least 1"),
    "hopeless rate": (f"fit v.npz --out out {FIT} --learning-rate 1e30", "lower the learning rate"),
    "unknown rule": ("evaluate v.npz --no-match maybe", "no_match is 'maybe'; wanted"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("as_json", [False, True], ids=["", "json"])
def test_bad_input_gets_one_sentence_exit_code_2_and_leaves_nothing(inside, command, message, as_json):
    check_refused(inside, command + (" --json" if as_json else ""), message)


@pytest.mark.parametrize("option", ["--seed -1", "--seed 99999999999", "--out-dim 0", "--neighbors many", "--depth 3"])
def test_an_option_of_no_meaning_is_refused_by_name(inside, option):
    check_refused(inside, f"fit v.npz --out out {option}", option.split()[0])


@pytest.mark.parametrize(
    ("command", "said"),
    {
        "fit v.npz": "error: missing option '--out' (see `entourage fit --help`)",
        "fit": "error: missing argument 'VECTORS' (see `entourage fit --help`)",
        "fit v.npz --out": "error: option '--out' requires an argument (see `entourage fit --help`)",
        "--xyz": "error: no such option: --xyz (see `entourage --help`)",
        "refne v.npy": "error: no such command 'refne'. Did you mean 'refine'? (see `entourage --help`)",
    }.items(),
)
def test_a_command_typed_wrongly_gets_one_sentence_and_where_to_read_on(inside, command, said):
    result = run(command)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"{said}\n")


def test_no_command_at_all_gets_the_help():
    result = run("")
    assert (result.exit_code, result.stdout) == (2, "") and "Commands:" in result.stderr


def test_a_damaged_model_never_runs_code(inside, tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    shutil.copytree("model", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "new.checkpoint").write_bytes(pickle.dumps(Trap()))
    refined = run(f"refine v.npy --model {tmp_path}/model --out {tmp_path}/out.npy")
    resumed = run(f"fit v.npz --out {tmp_path}/new --resume {FIT}")
    assert (refined.exit_code, resumed.exit_code) == (2, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "new.checkpoint"]
