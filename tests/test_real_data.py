"""Claims about real embeddings, checked where they are at hand: ENTOURAGE_DATA names their folder."""

import os
from pathlib import Path

import numpy as np
import pytest

from entourage import ContextRefiner, evaluate

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
