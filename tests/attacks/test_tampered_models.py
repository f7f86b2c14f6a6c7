"""Models, encoders and networks in which one thing was changed.

Every file of the folder is made missing, a folder, a pipe, a link to itself, empty, other bytes, cut or flipped at a
byte; every field of its JSON deleted or given each of `tampering.VALUES`; every array given another shape, type, name,
or NaN, infinities, zeros, huge numbers. Then the model is used. It must give unit vectors or be refused in one
sentence, within a minute and with nothing left behind.
"""

import pytest
from tests.attacks.attacking import attack
from tests.attacks.victims import GLYPHS, write_hugging_face

REFINE = "refine {folder}/v.npz --model {victim} --out {out}/out.npz"
SERVE = "refine {folder}/v.npz --model {victim} --context {folder}/g.npz --context-out {out}/g.npz --out {out}/out.npz"
EMBED = f"embed {GLYPHS} --model {{victim}} --out {{out}}/out.npz"
EMBED_VECTORS = "embed {folder}/v.npz --split all --model {victim} --out {out}/out.npz"

MODELS = {"relational": REFINE, "paper": REFINE, "universal": SERVE}
TRAINED = {"pictures": EMBED, "vectors": EMBED_VECTORS, "divide": EMBED_VECTORS, "network": REFINE}
PART_USED = {"network": "network"}  # the others are used by their encoder
SAMPLE, SAMPLE_OF_REFINERS = 12, 60  # of the latter, one of each kind: they are quick


@pytest.mark.parametrize("model", MODELS)
def test_a_tampered_refiner_is_refused_or_gives_unit_vectors(models, tmp_path, model):
    assert attack(models / model, MODELS[model], tmp_path, sample=SAMPLE_OF_REFINERS) == []


@pytest.mark.parametrize("run", TRAINED)
def test_a_tampered_encoder_is_refused_or_gives_unit_vectors(trainings, tmp_path, run):
    part = PART_USED.get(run, "encoder")
    assert attack(trainings / run, TRAINED[run], tmp_path, only=f"{part}/", sample=SAMPLE) == []


@pytest.mark.attack
@pytest.mark.parametrize("model", MODELS)
def test_every_tampering_with_a_refiner(models, tmp_path, model):
    assert attack(models / model, MODELS[model], tmp_path) == []


@pytest.mark.attack
@pytest.mark.parametrize("run", TRAINED)
def test_every_tampering_with_an_encoder(trainings, tmp_path, run):
    assert attack(trainings / run, TRAINED[run], tmp_path, only=f"{PART_USED.get(run, 'encoder')}/") == []


@pytest.mark.attack
def test_every_tampering_with_a_hugging_face_folder(tmp_path):
    write_hugging_face(tmp_path)
    assert attack(tmp_path / "vit", EMBED, tmp_path) == []
