"""An encoder of texts whose vectors are refined as they are made: anything with encode(), and models by name."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from entourage import ContextRefiner, evaluate
from entourage.errors import FileError, InputError
from entourage.integrations.sentence_transformers import RefinedEncoder

REAL = Path(os.environ.get("ENTOURAGE_DATA", "nowhere")) / "clinc150"
WORDS = ["flight delay", "hotel room", "bank account", "train ticket", "weather rain", "pizza cheese"]
FILLING = ["please", "help me with", "tell me about", "i want", "what is", "where is my", "question on", "need"]
TEXTS = [f"{filling} {word} {number}" for number in range(2) for filling in FILLING for word in WORDS]
QUERIES = ["my flight has a delay", "cheese on a pizza"]


class Tfidf:
    """The texts' words as vectors: an encoder that needs no download."""

    def __init__(self):
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer = TfidfVectorizer().fit(TEXTS)

    def encode(self, texts, normalise=False):
        single = isinstance(texts, str)
        vectors = self.vectorizer.transform([texts] if single else texts).toarray().astype(np.float32)
        return vectors[0] if single else vectors


def test_encode_gives_what_a_served_gallery_gives():
    model = Tfidf()
    encoder = RefinedEncoder(model, TEXTS)
    raw, asked = model.encode(TEXTS), model.encode(QUERIES)
    served = ContextRefiner().fit(raw).serve(raw)
    assert np.array_equal(encoder.gallery_embeddings, served.refined_gallery)
    assert np.array_equal(encoder.encode(QUERIES), served.transform(asked))
    assert np.allclose(encoder.encode(QUERIES[0]), served.transform(asked)[0], atol=1e-6), "one text, one vector"
    assert encoder.confidence(QUERIES).shape == (2,) and encoder.confidence(QUERIES[0]).shape == (1,)
    nearest = (encoder.encode(QUERIES) @ encoder.gallery_embeddings.T).argmax(axis=1)
    assert "flight" in TEXTS[nearest[0]] and "pizza" in TEXTS[nearest[1]]


def test_a_gallery_may_be_vectors_and_a_refiner_may_be_fitted():
    model = Tfidf()
    raw = model.encode(TEXTS)
    refiner = ContextRefiner().fit(raw)
    assert np.array_equal(
        RefinedEncoder(model, raw, refiner=refiner).encode(QUERIES), RefinedEncoder(model, TEXTS).encode(QUERIES)
    )


def test_what_cannot_encode_is_refused():
    with pytest.raises(InputError, match=r"a dict without encode\(\)"):
        RefinedEncoder({}, TEXTS)
    with pytest.raises(InputError, match="the gallery is one text"):
        RefinedEncoder(Tfidf(), "a text")


@pytest.mark.parametrize("library", ["sentence_transformers", "model2vec"])
def test_a_model_that_cannot_be_opened_is_named_with_what_to_do(library, tmp_path, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if library == "model2vec":
        monkeypatch.setattr("entourage.integrations.sentence_transformers.is_installed", library.__eq__)
    with pytest.raises(FileError, match=r"the model .* could not be opened \(.*\); check the name and the connection"):
        RefinedEncoder(str(tmp_path / "no model"), TEXTS)


@pytest.mark.skipif(not (REAL / "texts.json").is_file(), reason="clinc150 is not under ENTOURAGE_DATA")
def test_real_questions_find_more_of_their_intent():
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels = np.load(REAL / "labels.npy")
    some = np.flatnonzero(np.isin(labels, np.unique(labels)[:30]))
    texts, labels = np.array(json.loads((REAL / "texts.json").read_text()))[some], labels[some]
    gallery, queries = np.arange(len(some)) % 5 > 0, np.arange(len(some)) % 5 == 0
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), max_features=4000).fit(texts[gallery])
    model = SimpleNamespace(encode=lambda given: vectorizer.transform(given).toarray().astype(np.float32))
    encoder = RefinedEncoder(model, texts[gallery].tolist())
    against = {"labels": labels[queries], "gallery_labels": labels[gallery], "nmi": False}
    raw = evaluate(model.encode(texts[queries]), gallery=model.encode(texts[gallery]), **against).metrics
    refined = evaluate(encoder.encode(texts[queries]), gallery=encoder.gallery_embeddings, **against).metrics
    assert refined["map@r"] > raw["map@r"] + 0.03 and refined["recall@1"] > raw["recall@1"] - 0.02


def tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    words = sorted({word for text in TEXTS + QUERIES for word in text.split()})
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *words])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return made, len(vocabulary)


def test_a_model_of_sentence_transformers_works_and_by_its_folder_too(tmp_path):
    library = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    made, size = tokenizer()
    weights = np.random.default_rng(0).normal(size=(size, 24)).astype(np.float32)
    model = library.SentenceTransformer(modules=[StaticEmbedding(made, embedding_weights=weights)], device="cpu")
    encoder = RefinedEncoder(model, TEXTS, show_progress_bar=False)
    refined = encoder.encode(QUERIES)
    assert refined.shape == (2, 24) and np.allclose(np.linalg.norm(refined, axis=1), 1, atol=1e-5)
    assert isinstance(encoder.encode(QUERIES, convert_to_tensor=True), torch.Tensor)
    model.save(str(tmp_path / "model"))
    again = RefinedEncoder(str(tmp_path / "model"), TEXTS)
    assert np.allclose(again.encode(QUERIES), refined, atol=1e-5)


def test_a_model_of_model2vec_works_and_by_its_folder_too(tmp_path):
    library = pytest.importorskip("model2vec")
    made, size = tokenizer()
    weights = np.random.default_rng(0).normal(size=(size, 24)).astype(np.float32)
    model = library.StaticModel(weights, made)
    refined = RefinedEncoder(model, TEXTS).encode(QUERIES)
    assert refined.shape == (2, 24)
    model.save_pretrained(tmp_path / "model")
    assert np.allclose(RefinedEncoder(tmp_path / "model", TEXTS).encode(QUERIES), refined, atol=1e-5)
