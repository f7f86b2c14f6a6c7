"""A model folder is read as it was written, or refused with a reason."""

import json

import numpy as np
import pytest

from entourage.errors import FileError, ModelError
from entourage.refiner import PaperRefiner


@pytest.fixture(scope="module")
def refiner():
    rng = np.random.default_rng(0)
    return PaperRefiner(3, 1, epochs=1).fit(rng.normal(size=(40, 6)), np.repeat(np.arange(8), 5))


def test_a_folder_says_who_wrote_it(refiner, tmp_path):
    refiner.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config.keys() >= {"entourage", "system", "layout", "settings", "history"}
    assert config["system"] == "paper_refiner"


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_folder_short_of_a_file_names_it(refiner, tmp_path, missing):
    refiner.save(tmp_path / "m")
    (tmp_path / "m" / missing).unlink()
    with pytest.raises(FileError, match=f"has no {missing}"):
        PaperRefiner.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"n_neighbors": "eight"}}, "n_neighbors is 'eight'"),
        ({"settings": {"colour": 1}}, "colour"),
        ({"system": "intra_batch"}, "it is intra_batch, layout 1"),
        ({"layout": 99}, "layout 99"),
    ],
)
def test_a_config_of_another_kind_is_refused(refiner, tmp_path, change, message):
    refiner.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ModelError, match=message):
        PaperRefiner.load(tmp_path / "m")


def test_a_config_short_of_a_field_names_it(refiner, tmp_path):
    refiner.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    del config["dim"]
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"config\.json: dim is missing; wanted a whole number"):
        PaperRefiner.load(tmp_path / "m")
