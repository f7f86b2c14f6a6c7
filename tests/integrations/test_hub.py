"""Refiners, encoders and runs on the Hugging Face hub, through folders, its cache and a stand-in for its server."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from entourage import ContextRefiner, Embeddings
from entourage.errors import FileError, InputError, ModelError
from entourage.stores.model_card import ModelCard

hub = pytest.importorskip("entourage.integrations.hub", reason="encoders need torch")


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(8, 6))[np.arange(120) % 8] + 0.4 * rng.normal(size=(120, 6))).astype(np.float32)


@pytest.fixture(scope="module")
def refiner(vectors):
    return ContextRefiner().fit(vectors)


def test_a_refiner_comes_back_from_a_folder_with_its_card(refiner, vectors, tmp_path):
    refiner.save_pretrained(tmp_path / "model")
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    for loaded in (ContextRefiner.from_pretrained(tmp_path / "model"), hub.from_pretrained(tmp_path / "model")):
        assert np.array_equal(loaded.transform(vectors, context=vectors), refiner.transform(vectors, context=vectors))
    card = (tmp_path / "model/README.md").read_text()
    assert card.startswith("---\nlibrary_name: entourage\n")
    for part in ("# ContextRefiner", "## Data", "| items | 120 |", "## How it was made", "## Scores", "## Limits"):
        assert part in card, part
    with pytest.raises(FileError, match="overwrite"):
        refiner.save_pretrained(tmp_path / "model")
    refiner.save_pretrained(tmp_path / "model", overwrite=True)  # the card is one of our files


def test_a_repository_is_found_in_the_cache_of_the_hub(refiner, vectors, tmp_path):
    pytest.importorskip("huggingface_hub")
    snapshot = tmp_path / "models--me--refiner/snapshots" / ("a" * 40)
    refiner.save_pretrained(tmp_path / "model")
    shutil.copytree(tmp_path / "model", snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs/main").write_text("a" * 40)
    offline = {"cache_dir": tmp_path, "local_files_only": True}
    loaded = ContextRefiner.from_pretrained("me/refiner", **offline)
    assert np.array_equal(loaded.transform(vectors, context=vectors), refiner.transform(vectors, context=vectors))
    with pytest.raises(FileError, match=r"no folder me/other, and the Hugging Face hub or its local cache"):
        ContextRefiner.from_pretrained("me/other", **offline)
    with pytest.raises(FileError, match="wanted one, or a repository"):
        ContextRefiner.from_pretrained("no such folder")


def test_what_is_pushed_is_what_is_saved(refiner, tmp_path, monkeypatch):
    library = pytest.importorskip("huggingface_hub")
    calls = []

    class Server:
        def __init__(self, token=None):
            self.token = token

        def create_repo(self, repo_id, **options):
            calls.append((repo_id, self.token, options))

        def upload_folder(self, *, repo_id, folder_path, ignore_patterns, **options):
            shutil.copytree(folder_path, tmp_path / "there")
            assert "*.pkl" in ignore_patterns
            return SimpleNamespace(commit_url=f"https://example.org/{repo_id}/commit/1")

    monkeypatch.setattr(library, "HfApi", Server)
    address = refiner.push_to_hub("me/refiner", private=True, token="secret")
    assert address.endswith("me/refiner/commit/1")
    assert calls == [("me/refiner", "secret", {"private": True, "exist_ok": True})]
    assert ContextRefiner.from_pretrained(tmp_path / "there").n_features_in_ == 6
    assert "secret" not in (tmp_path / "there/README.md").read_text()
    with pytest.raises(InputError, match="wanted owner/name"):
        refiner.push_to_hub("refiner")
    monkeypatch.setattr(Server, "create_repo", lambda *_, **__: 1 / 0)
    with pytest.raises(FileError, match="did not take me/refiner"):
        hub.push_to_hub(refiner, "me/refiner")


def test_an_encoder_comes_back(tmp_path):
    torch = pytest.importorskip("torch")
    from entourage.encoders import VectorEncoder

    encoder = VectorEncoder(6, 4).eval()
    hub.save_pretrained(encoder, tmp_path / "encoder")
    x = torch.randn(3, 6)
    assert torch.equal(hub.from_pretrained(tmp_path / "encoder")(x), encoder(x))
    assert "| dimensions of a vector | 4 |" in (tmp_path / "encoder/README.md").read_text()


def test_a_run_comes_back_with_a_table_of_its_scores(refiner, vectors, tmp_path):
    from entourage.runs.open import open_run
    from entourage.runs.refine import write_refinement

    items = Embeddings.from_vectors(vectors, labels=[f"class {n % 8}" for n in range(120)])
    run = write_refinement(tmp_path / "run", refiner, items)
    hub.save_pretrained(run, tmp_path / "copy")
    again = hub.from_pretrained(tmp_path / "copy")
    assert np.array_equal(again.refined.vectors, run.refined.vectors)
    card = (tmp_path / "copy/README.md").read_text()
    assert "|  | before | after |" in card and "| recall@1 | " in card
    hub.save_pretrained(open_run(tmp_path / "copy"), tmp_path / "run 2")
    assert (tmp_path / "run 2/items.npz").is_file()


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="the model is a dict"):
        hub.save_pretrained({}, tmp_path / "model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="wanted a refiner, an encoder or a run"):
        hub.from_pretrained(tmp_path / "empty")
    (tmp_path / "empty/config.json").write_text("{}")
    (tmp_path / "empty/model.safetensors").touch()
    with pytest.raises((ModelError, FileError)):
        hub.from_pretrained(tmp_path / "empty")


def test_texts_on_a_card_stay_texts():
    card = ModelCard(
        title="a|b <script>",
        summary="A model.",
        usage="pass",
        data={"source": "[x](http://y)\n| z |"},
        protocol={"share": 0.25, "flag": True},
        scores={"": {"map@r": 0.5}},
        limits=("*none*",),
    ).text()
    assert "# a\\|b \\<script\\>" in card and "\\[x\\](http://y) \\| z \\|" in card and "- \\*none\\*" in card
    assert "| share | 0.25 |" in card and "| map@r | 50.00 % |" in card  # fractions in percent
