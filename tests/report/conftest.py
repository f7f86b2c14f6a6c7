"""Runs that are reported on, as small as they can be."""

import numpy as np
import pytest
from tests.report.pictures import draw_colours

from entourage.refiner.estimator import ContextRefiner
from entourage.report import write_report
from entourage.runs.media import Media, PictureSource
from entourage.runs.refine import write_refinement
from entourage.runs.train import TrainRequest, train_run
from entourage.systems.baseline.settings import BaselineSettings
from entourage.values import Embeddings

CLASSES, PER_CLASS, DIM = 6, 10, 8


def items_of(seed: int, *, labels: bool = True, ids=None) -> Embeddings:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(CLASSES), PER_CLASS)
    centers = np.random.default_rng(1).normal(size=(CLASSES, DIM))
    vectors = centers[codes] + 0.9 * rng.normal(size=(len(codes), DIM))
    names = np.array([f"class <{code}>" for code in codes])
    return Embeddings.from_vectors(vectors, ids=ids, labels=names if labels else None)


@pytest.fixture(scope="session")
def refiner():
    """It needs no labels, and no time."""
    return ContextRefiner().fit(items_of(0, labels=False))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    return draw_colours(tmp_path_factory.mktemp("pictures"), CLASSES, PER_CLASS)


@pytest.fixture(scope="session")
def labelled(tmp_path_factory, refiner, pictures):
    """A refinement of pictures whose labels are known."""
    ids = [f"class {code}/{shot:02}.png" for code in range(CLASSES) for shot in range(PER_CLASS)]
    media = Media(PictureSource(str(pictures), split="train,test"))
    folder = tmp_path_factory.mktemp("runs") / "labelled"
    write_refinement(folder, refiner, items_of(0, ids=np.array(ids)), media=media)
    return folder


@pytest.fixture(scope="session")
def bare(tmp_path_factory, refiner):
    """A refinement of vectors about which nothing is known."""
    folder = tmp_path_factory.mktemp("runs") / "bare"
    write_refinement(folder, refiner, items_of(0, labels=False))
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The shortest training there is."""
    folder = tmp_path_factory.mktemp("runs") / "trained"
    settings = BaselineSettings(
        dim=4, image_size=8, encoder_options={"width": 4}, batch_classes=3, batch_per_class=2, epochs=2, workers=1
    )
    train_run(
        TrainRequest("glyphs", folder, settings=settings, data_options={"per_class": 4, "max_classes": 8}, nmi=False)
    )
    return folder


@pytest.fixture(scope="session")
def reports(tmp_path_factory, labelled, bare, trained):
    """The report of each, name -> file."""
    folder = tmp_path_factory.mktemp("reports")
    runs = {"labelled": labelled, "bare": bare, "trained": trained}
    return {name: write_report(run, folder / f"{name}.html") for name, run in runs.items()}
