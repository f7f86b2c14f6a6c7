"""A run: an encoder trained on a dataset and scored on classes it has not seen, kept as a folder.

    RUN/config.json     system, data, every setting, seed, versions
    RUN/log.jsonl       a line per epoch
    RUN/encoder/        the encoder of the epoch that was kept
    RUN/metrics.json    its scores on the unseen classes, in the form of `entourage evaluate --json`
    RUN/tensorboard/    if asked for
    RUN/NAME/           what a system keeps besides, such as the network of intra-batch (System.keeps)

While it goes on it is RUN.partial, with the checkpoint of its last epoch; RUN appears when all is done. Which epoch is
kept is chosen on training classes: test labels are used for the final scores alone.
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from entourage import __version__, data
from entourage.errors import EntourageWarning, FileError, InputError
from entourage.evaluation import Scores, evaluate_embeddings
from entourage.evaluation.exclusions import any_match
from entourage.runtime.config import to_dict
from entourage.runtime.versions import library_versions
from entourage.runtime.warnings import collected_warnings
from entourage.stores import check_free, encoder_of_vectors, new_folder, write_json
from entourage.stores.logs import read_log
from entourage.systems import system_named
from entourage.systems.settings import NOT_DECISIVE
from entourage.systems.trained import nothing_learned
from entourage.training.sampling import hold_out_classes, usable_classes
from entourage.values import Embeddings

__all__ = [
    "TrainResult",
    "check_own_vectors",
    "encoder_of",
    "left_out",
    "partial_of",
    "train_run",
]

ENCODER, METRICS, CONFIG, LOG, BOARD = "encoder", "metrics.json", "config.json", "log.jsonl", "tensorboard"
_UNTRAINED = ("auto", "small", "small-rgb", "linear", "mlp")  # encoders by name that have no weights of their own


@dataclass(frozen=True, eq=False)
class TrainResult:
    """Where a run was written, and how well its encoder does on unseen classes."""

    folder: Path
    scores: Scores
    protocol: dict
    warnings: list[str]
    corrupt: list[str]
    """Paths of pictures that could not be decoded and were left out."""
    history: object

    def document(self) -> dict:
        """What metrics.json holds."""
        return {"protocol": self.protocol, "metrics": self.scores.metrics, "warnings": self.warnings}


def train_run(
    source,
    out,
    *,
    system: str = "baseline",
    settings=None,
    root=None,
    data_options: dict | None = None,
    resume: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    nmi: bool = True,
    progress=None,
) -> TrainResult | None:
    """Train on a dataset, folder or .csv as data.load takes it, and write the run folder, whole or not at all.

    An interrupted run stays as `partial_of(out)` once it has finished an epoch, and `resume` ends it as it would have
    ended; one that fails by its input leaves nothing. Under `torchrun` the first process writes, the others get None.
    """
    chosen = system_named(system)
    settings = chosen.settings() if settings is None else settings
    out, main = Path(out), int(os.environ.get("RANK", 0)) == 0  # torchrun numbers its processes
    if main:
        _check_places(out, resume=resume, overwrite=overwrite)
    with collected_warnings() as doubts:
        training, tests = _load(source, root, data_options or {})
    for doubt in doubts if main else ():
        warnings.warn(doubt, EntourageWarning, stacklevel=2)
    settings = _with_encoder(settings, training)
    described = {"source": str(source), "root": root and str(root), "options": data_options or {}}
    config = _config(system, described, settings)
    if strict and main:  # not after hours of training
        _check_pictures((training, *tests.values()), settings.workers, progress)
    options = {"resume": resume, "strict": strict, "progress": progress}
    with _begun(partial_of(out), config, resume=resume) if main else nullcontext():
        encoder, history, corrupt = chosen.train(training, settings, run_folder=partial_of(out), **options)
    if not main:
        return None
    seed = getattr(settings, "seed", 0)
    scores, untested = _scores(encoder, tests, strict, nmi, seed, progress)
    corrupt = list(dict.fromkeys([*corrupt, *untested]))
    doubts += [*nothing_learned(history), *scores.warnings]
    count = len(training) + sum(map(len, tests.values()))
    doubts += left_out(corrupt, count, " (of training, those drawn are counted)")
    protocol = _protocol(source, system, settings, training, tests, history) | scores.protocol
    run = TrainResult(out, scores, protocol, doubts, corrupt, history)
    _write(run, encoder, config, chosen.keeps)
    return run


def partial_of(out) -> Path:
    """Where a run is kept until it is done."""
    out = Path(out)
    return out.with_name(out.name + ".partial")


def left_out(corrupt: list[str], count: int, note: str = "") -> list[str]:
    """A warning of pictures that could not be decoded, if there are any; also given as an EntourageWarning."""
    if not corrupt:
        return []
    text = f"{len(corrupt)} of {count} pictures cannot be decoded and are left out; the first is {corrupt[0]}{note}"
    warnings.warn(text, EntourageWarning, stacklevel=2)
    return [text]


def encoder_of(model):
    """The encoder of a run folder, of a folder of save_encoder, or of a Hugging Face model by folder or name."""
    from entourage.encoders import build_encoder, load_encoder
    from entourage.encoders.saving import saved_encoder

    folder, saved = Path(model), saved_encoder(model)
    if saved is not None:
        return load_encoder(saved)
    if folder.name.endswith(".partial") or partial_of(folder).is_dir():
        raise FileError(f"{model} is a run that has not ended; finish it with `entourage train ... --resume`")
    if str(model) in _UNTRAINED:
        raise InputError(f"the model is {model!r}, which has learned nothing yet; wanted a run: train one with it")
    return build_encoder(str(model)).eval()


def check_own_vectors(path, run) -> None:
    """Warn of a file whose vectors say that another encoder made them than the run's; most files say nothing."""
    from entourage.encoders.saving import encoder_fingerprint

    said = encoder_of_vectors(path)
    if said is not None and said != encoder_fingerprint([encoder_of(run)]):
        text = f"{path} holds vectors of another encoder, which mean nothing to the network of {run}; embed with {run}"
        warnings.warn(text, EntourageWarning, stacklevel=2)


def _with_encoder(settings, items):
    """The settings with the encoder that "auto" stands for, so that the run says which it is."""
    if settings.encoder != "auto":
        return settings
    from entourage.encoders.saving import small_encoder_for

    return replace(settings, encoder=small_encoder_for(items))


# ---- before training ---------------------------------------------------------------------------------------------


def _check_places(out: Path, *, resume: bool, overwrite: bool) -> None:
    if out.is_file() or not out.name:
        raise FileError(f"the run is to be written to {out}; wanted the name of a folder: choose another")
    check_free(out, overwrite=overwrite)
    partial = partial_of(out)
    if partial.exists():
        check_free(partial, overwrite=True)  # never what someone else wrote
        if not (resume or overwrite):
            raise FileError(
                f"{partial} keeps an interrupted run; resume it (--resume), or start again (--overwrite, or delete it)"
            )
    elif resume:
        raise FileError(f"there is no {partial} to resume; run without --resume to start")


def _load(source, root, options: dict) -> tuple:
    """The training set, and the sets it will be tested on by name: test, or query and gallery."""
    names = data.splits(source, root, **options)
    training = data.load(source, "train", root, **options)
    tests = {name: data.load(source, name, root, **options) for name in names if name != "train"}
    queries, gallery = tests[names[1]], tests[names[-1]]
    if not any_match(queries, gallery):
        raise InputError(
            f"no picture of {source} to test with has another of its class to find, so that every score would be 0; "
            "wanted test classes of two pictures or more (by two cameras, or in two sequences, where these are known)"
        )
    _check_enough(source, training.labels, np.concatenate([queries.labels, gallery.labels]))
    return training, tests


def _check_enough(source, trained: np.ndarray, tested: np.ndarray) -> None:
    """Two classes to learn from, or a sentence that says where the others are."""
    learned, train = len(usable_classes(trained)), len(np.unique(trained))
    total = len({*trained.tolist(), *tested.tolist()})
    if learned < 2:
        raise InputError(
            f"{train} of the {total} classes of {source} train and the others test, and {learned} of those that train "
            "have two or more items; wanted two such classes: bring more, or let more train where the data do not say "
            "which (--data-option train_share=0.7)"
        )


def _check_pictures(sets, workers: int | None, progress) -> None:
    from entourage.data.decoding import check_decodable  # here: torch takes seconds

    for images in sets:
        check_decodable(images, workers=workers, progress=progress)


def _config(system: str, described: dict, settings) -> dict:
    seed = getattr(settings, "seed", 0)
    config = {"entourage": __version__, "system": system, "data": described, "settings": to_dict(settings)}
    return config | {"seed": seed, "versions": library_versions()}


@contextmanager
def _begun(partial: Path, config: dict, *, resume: bool) -> Iterator[None]:
    """The folder to train in. A failure that nothing can be resumed from leaves things as they were before."""
    replaced = partial.with_name(f".{partial.name}.replaced")
    if partial.exists() and not resume:
        shutil.rmtree(replaced, ignore_errors=True)  # left by a crash
        partial.rename(replaced)
    if resume:
        _check_same_settings(partial, config)
    try:
        partial.mkdir(exist_ok=True)
        if not resume:  # a run that goes on keeps what it began with
            write_json(partial / CONFIG, config)
        yield
    except BaseException as error:
        # The same input would fail again; a corrupt picture may be replaced, a full disk emptied, and the run resumed.
        hopeless = isinstance(error, InputError)
        if not resume and (hopeless or not _has_learned(partial)):
            shutil.rmtree(partial, ignore_errors=True)
            if replaced.exists():
                replaced.rename(partial)
        raise
    finally:
        shutil.rmtree(replaced, ignore_errors=True)


def _check_same_settings(partial: Path, config: dict) -> None:
    """Refuse to go on with other settings, and name the first; the checkpoint, once there is one, looks at data too."""
    try:
        began = json.loads((partial / CONFIG).read_text(encoding="utf-8"))
        before, now = ({"system": each["system"], **each["settings"]} for each in (began, config))
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name, value in now.items():
        if name not in NOT_DECISIVE and before.get(name, value) != value:
            raise InputError(
                f"{name} is {value!r} but {partial} was begun with {before[name]!r}; resume with the same settings, "
                "or start again (--overwrite)"
            )


def _has_learned(partial: Path) -> bool:
    """Whether an epoch of training is finished; epoch 0 is the state before it."""
    return any(entry["epoch"] > 0 for entry in read_log(partial / LOG))


# ---- after training ----------------------------------------------------------------------------------------------


def _scores(encoder, tests: dict, strict: bool, nmi: bool, seed: int, progress) -> tuple[Scores, list[str]]:
    """The scores, and the paths of test pictures that cannot be decoded."""
    embedded = [embed_tests(encoder, images, strict=strict, progress=progress) for images in tests.values()]
    items = [found for _, found, _ in embedded]
    gallery = items[1] if len(items) > 1 else None
    scores = evaluate_embeddings(items[0], gallery, nmi=nmi, seed=seed, progress=progress)
    return scores, [path for *_, corrupt in embedded for path in corrupt]


def embed_tests(encoder, images, **options) -> tuple[np.ndarray, Embeddings, list[str]]:
    """Rows (n,) of the pictures that can be decoded, how the encoder sees them, and the paths of the others.

    options: as embed_shards takes them.
    """
    from entourage.encoders.embedding import embed_shards

    rows, vectors, corrupt = next(embed_shards(encoder, images, shard_size=len(images), **options))
    if not len(rows):
        raise InputError(f"none of the {len(images)} pictures to test with can be decoded; check the files")
    shots = {name: getattr(images, name, None) for name in ("cameras", "sequences")}
    shots = {name: values[rows] for name, values in shots.items() if values is not None}
    return rows, Embeddings.from_vectors(vectors, images.ids[rows], images.labels[rows], **shots), corrupt


def _protocol(source, system: str, settings, training, tests: dict, history) -> dict:
    best = history.best_score
    chosen = "the last" if best is None else f"best MAP@R of held-out training classes, {100 * best:.2f} %"
    kind = "vectors" if hasattr(training, "vectors") else "pictures"
    return {
        "data": f"{source}, {' in '.join(tests)}: {_unseen(training, tests)}",
        "trained_on": f"{len(training)} {kind} of {_classes(training, settings)}",
        "system": system,
        **{name: getattr(settings, name) for name in ("encoder", "loss", "seed") if hasattr(settings, name)},
        "epoch_kept": f"{history.best_epoch} of {history.epoch}: {chosen}",
    }


def _classes(training, settings) -> str:
    """How many, how many are held out, and what was asked for in vain."""
    held_out = hold_out_classes(training.labels, settings.validation_share, settings.seed)
    count = len(np.unique(training.labels[held_out]))
    told = f", {count} of them held out to choose the epoch" if count else ""
    if settings.validation_share and not count:
        told = ", too few to hold some out and choose the epoch by them"
    learned = len(usable_classes(training.labels[~held_out]))
    if learned < settings.batch_classes:
        told += f"; batches have {learned} classes instead of {settings.batch_classes}, as no more have two items"
    return f"{len(np.unique(training.labels))} classes{told}"


def _unseen(training, tests: dict) -> str:
    tested = np.unique(np.concatenate([np.unique(images.labels) for images in tests.values()]))
    seen = int(np.isin(tested, training.labels).sum())
    return f"{seen} of {len(tested)} classes were trained on too" if seen else "classes unseen in training"


def _write(run: TrainResult, encoder, config: dict, keeps: tuple[str, ...]) -> None:
    from entourage.encoders import save_encoder

    partial = partial_of(run.folder)
    with new_folder(run.folder) as filling:
        write_json(filling / CONFIG, config)
        write_json(filling / METRICS, run.document())
        shutil.copyfile(partial / LOG, filling / LOG)
        for name in (BOARD, *keeps):
            if (partial / name).is_dir():
                shutil.copytree(partial / name, filling / name)
        save_encoder(filling / ENCODER, encoder)
    shutil.rmtree(partial, ignore_errors=True)
