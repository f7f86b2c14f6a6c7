"""Claims about real embeddings, checked where they are at hand: ENTOURAGE_DATA names their folder."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from entourage import ContextRefiner, EntourageWarning, evaluate
from entourage.refiner.encoder_profile import learn_profile, warn_of_another_encoder
from entourage.values import Embeddings

DATA = Path(os.environ.get("ENTOURAGE_DATA", "nowhere"))


@pytest.mark.skipif(not (DATA / "clinc150").is_dir(), reason="set ENTOURAGE_DATA to a folder with clinc150")
def test_unseen_intents_gain_fifteen_points_of_map_at_r():
    X, y = np.load(DATA / "clinc150" / "vectors.npy"), np.load(DATA / "clinc150" / "labels.npy")
    seen = y < 75
    refiner = ContextRefiner().fit(X[seen], y[seen])
    before = evaluate(X[~seen], y[~seen], nmi=False).metrics
    after = evaluate(refiner.transform(X[~seen], context=X[~seen]), y[~seen], nmi=False).metrics
    assert after["map@r"] >= before["map@r"] + 0.15
    assert after["recall@1"] >= before["recall@1"] - 0.005


@pytest.mark.parametrize("folder", sorted(DATA.glob("*/vectors.npy")), ids=lambda path: path.parent.name)
def test_other_classes_never_look_like_another_encoder_and_permuted_dimensions_do(folder):
    X, y = np.load(folder), np.load(folder.with_name("labels.npy"))
    items = Embeddings.from_vectors(X.astype(np.float32), labels=y)
    seen = y < (y.max() + 1) // 2
    rng = np.random.default_rng(0)
    for one, other in ((seen, ~seen), (~seen, seen)):
        profile, others = learn_profile(items.take(one)), items.take(other)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_another_encoder(others, profile, "the vectors")
        if profile is not None:
            with pytest.warns(EntourageWarning, match="the vectors look as if another encoder"):
                permuted = Embeddings.from_vectors(others.vectors[:, rng.permutation(items.dim)])
                warn_of_another_encoder(permuted, profile, "the vectors")
