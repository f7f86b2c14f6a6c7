import json

import numpy as np
import pytest

from entourage.errors import FileError, InputError
from entourage.stores.texts import read_texts
from entourage.values import Embeddings

ITEMS = Embeddings(np.eye(3, dtype=np.float32), ["a", "b", "c"])
UNNAMED = Embeddings(np.eye(3, dtype=np.float32))
TEXTS = ["one, two", "", "drei ü"]


def test_texts_by_order(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(TEXTS))
    (tmp_path / "t.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "t.csv").write_text('text\n"one, two"\n""\ndrei ü\n', encoding="utf-8")
    for name in ("t.json", "t.txt", "t.csv"):
        assert read_texts(tmp_path / name, UNNAMED) == TEXTS


def test_texts_by_id(tmp_path):
    (tmp_path / "t.csv").write_text('id,text\nc,third\na,"first\nline"\nb,second\nd,of another\n')
    assert read_texts(tmp_path / "t.csv", ITEMS) == ["first\nline", "second", "third"]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("t.json", '["a", 1]', FileError, "not a list of texts"),
        ("t.json", "[", FileError, "cannot be read as .json"),
        ("t.txt", "a\nb\n", InputError, "2 texts for 3 vectors"),
        ("t.csv", "id,sentence\na,b\n", FileError, "wanted one called `text`"),
        ("t.csv", "id,text\na,b\nb,c\n", InputError, "1 of 3 ids have no line in"),
        ("t.csv", "id,text\na\n", FileError, "has 1 cells; wanted 2"),
        ("t.pkl", "", FileError, "texts are read from .json, .txt, .csv"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, name, content, error, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        read_texts(tmp_path / name, ITEMS)
