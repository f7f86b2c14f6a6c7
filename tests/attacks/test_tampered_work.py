"""Unfinished work in which one thing was changed, as in test_tampered_models.py, then resumed.

It must be finished, with a result that can be used, or refused in one sentence.
"""

import pytest
from tests.attacks.attacking import attack
from tests.attacks.victims import EMBEDDING, FIT, TRAINING

WORK = {"embedding": EMBEDDING, "training": TRAINING, "fit": FIT}
USED_BY = {
    "embedding": "evaluate {victim}/out.npz --no-nmi",
    "training": "embed {folder}/v.npz --split all --model {victim}/run --out {out}/out.npz",
    "fit": "refine {folder}/v.npz --model {victim}/model --out {out}/out.npz",
}
SAMPLE = 20


@pytest.mark.parametrize("kind", WORK)
def test_tampered_work_is_refused_or_finished(work, tmp_path, kind):
    assert attack(work / kind, f"{WORK[kind]} --resume", tmp_path, then=USED_BY[kind], sample=SAMPLE) == []


@pytest.mark.attack
@pytest.mark.parametrize("kind", WORK)
def test_every_tampering_with_work(work, tmp_path, kind):
    assert attack(work / kind, f"{WORK[kind]} --resume", tmp_path, then=USED_BY[kind]) == []
