"""What is fitted follows from its seed alone, in any number of threads, and no random state of the caller changes."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest
import rich.style  # noqa: F401  # draws a number for itself when it is first imported, by scikit-learn for instance
import torch
from tests.systems.stripes import stripes

from entourage import ContextRefiner, Embeddings, PaperRefiner, evaluate, load_refiner
from entourage.baselines import LinearHead, SelfAttention
from entourage.encoders import load_encoder, save_encoder
from entourage.figures.projection import lay_out
from entourage.systems import SYSTEMS
from entourage.systems.cross_image.blocks import load_blocks
from entourage.systems.intra_batch.saving import load_network

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")

RNG = np.random.default_rng(0)
LABELS = np.arange(72) % 8
VECTORS = (RNG.normal(size=(8, 12))[LABELS] + 0.5 * RNG.normal(size=(72, 12))).astype(np.float32)
ITEMS = Embeddings.from_vectors(VECTORS, labels=LABELS)
IMAGES = stripes(n_classes=6, per_class=6, side=8)
TINY = {"dim": 8, "batch_classes": 3, "epochs": 2, "validation_share": 0.0}
OF_PICTURES = TINY | {"encoder_options": {"width": 2}}
PAPER = {"n_neighbors": 5, "n_blocks": 2, "epochs": 2, "batch_classes": 4}
DROPOUT = {"encoder": "mlp", "encoder_options": {"hidden": [16], "dropout": 0.3}}


def weights(module) -> list[np.ndarray]:
    return [value.detach().numpy().copy() for value in module.state_dict().values()]


def trained(system: str, items, options: dict):
    """A function of the seed that trains a system and gives the weights it ends with."""

    def train(seed: int) -> list[np.ndarray]:
        chosen = SYSTEMS[system].settings(**options, seed=seed)
        return weights(SYSTEMS[system].train(items, chosen).encoder)

    return train


def refined_with_labels(seed: int) -> list[np.ndarray]:
    """Refined vectors, and scores of the rehearsals, in which the seed shows whatever is chosen."""
    refiner = ContextRefiner(random_state=seed).fit(VECTORS, LABELS)
    return [refiner.transform(VECTORS, VECTORS), np.array(list(refiner.report()["metrics"].values()))]


FITS = {
    "ContextRefiner": refined_with_labels,
    "PaperRefiner": lambda seed: [
        PaperRefiner(**PAPER, random_state=seed).fit(VECTORS, LABELS).transform(VECTORS, VECTORS)
    ],
    "head": lambda seed: [LinearHead(epochs=2, random_state=seed).fit(ITEMS).transform(ITEMS).vectors],
    "self-attention": lambda seed: [SelfAttention(epochs=2, random_state=seed).fit(ITEMS).transform(ITEMS).vectors],
    "baseline, dropout": trained("baseline", ITEMS, TINY | DROPOUT),
    "baseline, mined pairs": trained("baseline", ITEMS, TINY | DROPOUT | {"loss": "margin"}),
    "baseline, pictures": trained("baseline", IMAGES, OF_PICTURES),
    "divide": trained("divide", ITEMS, TINY | DROPOUT | {"learners": 2}),
    "cross-image": trained(
        "cross-image", IMAGES, OF_PICTURES | {"encoder_options": {"width": 2, "last_stride": 1}, "blocks": 1}
    ),
    "intra-batch": trained("intra-batch", IMAGES, OF_PICTURES | {"dropout": 0.3}),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, one_thread):
    """A folder of each kind of model."""
    folder = tmp_path_factory.mktemp("runs")
    options = OF_PICTURES | {"encoder_options": {"width": 2, "last_stride": 1}}
    for system in ("intra-batch", "cross-image"):
        encoder = SYSTEMS[system].train(IMAGES, SYSTEMS[system].settings(**options), run_folder=folder / system).encoder
        save_encoder(folder / system / "encoder", encoder)
    PaperRefiner(5, n_blocks=1, epochs=1, batch_classes=4).fit(VECTORS, LABELS).save(folder / "paper")
    return folder


def random_states() -> list:
    """Of all that draws without being given a seed."""
    kind, keys, *rest = np.random.get_state()
    return [torch.get_rng_state().tolist(), kind, keys.tolist(), rest, random.getstate()]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture
def noise():
    """Another thread that keeps drawing from the states of the process."""
    enough = Event()

    def draw():
        while not enough.wait(1e-4):
            torch.rand(3), np.random.rand(3), random.random()

    thread = Thread(target=draw)
    thread.start()
    yield
    enough.set()
    thread.join()


def check(fit, noise) -> None:
    alone = [fit(seed) for seed in (0, 1, 0)]
    assert same(alone[0], alone[2])
    assert not same(alone[0], alone[1])
    together = Barrier(2)

    def begin(seed: int) -> list[np.ndarray]:
        together.wait()
        return fit(seed)

    with ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(begin, (0, 1)))
    assert all(same(one, other) for one, other in zip(at_once, alone, strict=False))


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_fits_in_threads_are_those_of_one_alone(fit, noise):
    check(fit, noise)


def test_so_are_students(runs, noise):
    check(trained("student", IMAGES, OF_PICTURES | {"teacher": str(runs / "intra-batch")}), noise)


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_no_fit_changes_a_random_state_of_the_caller(fit):
    before = random_states()
    fit(0)
    assert random_states() == before


def test_nor_does_anything_else(runs):
    before = random_states()
    train_student = trained("student", IMAGES, OF_PICTURES | {"teacher": str(runs / "intra-batch")})
    calls = {
        "student": lambda: train_student(0),
        "load_refiner": lambda: load_refiner(runs / "paper"),
        "load_encoder": lambda: load_encoder(runs / "intra-batch" / "encoder"),
        "load_network": lambda: load_network(runs / "intra-batch"),
        "load_blocks": lambda: load_blocks(runs / "cross-image" / "cross_image"),
        "evaluate": lambda: evaluate(VECTORS, LABELS),
        "lay_out": lambda: lay_out(ITEMS),
        "refine": lambda: ContextRefiner().fit_transform(VECTORS),
    }
    for name, call in calls.items():
        call()
        assert random_states() == before, name
