"""The glyph dataset: how its characters were chosen, and what its pictures promise."""

import re
import subprocess
import sys
import unicodedata
import zlib

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from entourage import data
from entourage.data.sets import glyphs
from entourage.errors import InputError

# Two characters are alike when, each in some face of these, almost no ink of either lies off the other's
# widened ink. A character is kept unless it is like one kept before it, training scripts first.
FACES_COMPARED = ("DejaVuSans", "DejaVuSerif", "DejaVuSerif-Italic")
REACH = 2
ALIKE = 0.07
# FreeType versions round outlines differently; a character may sit this near to the limit on either side.
SLACK = 0.015
# Twins of Latin I, Q and d to a person, though their bars and tails lie elsewhere.
TWINS_BY_EYE = "ⵊⵕძ"


def candidates(script: str) -> list[str]:
    """Plain letters of a script in codepoint order: no marks, accents, ligatures or contextual forms."""
    codes = dict(zip(glyphs._FACES, (codes for _, codes in glyphs._fonts()), strict=True))["DejaVuSans"]
    return [char for char in map(chr, sorted(codes)) if _belongs(char, script) and _plain(char)]


def _belongs(char: str, script: str) -> bool:
    name = unicodedata.name(char, "")
    if not name.startswith(script.upper() + " "):
        return False
    if script == "Canadian":  # bare syllables only: the others add dots
        return bool(re.fullmatch(r"CANADIAN SYLLABICS [B-DF-HJ-NP-VX-Z]{0,2}[AEIO]", name))
    if script == "Arabic":
        return ord(char) <= 0x64A
    return not (0x2D00 <= ord(char) < 0x2D30)  # Georgian church letters: small copies of the capitals


def _plain(char: str) -> bool:
    name = unicodedata.name(char)
    adorned = re.search(r"\bWITH\b|DIGRAPH|LIGATURE|SMALL CAPITAL", name)
    letter = unicodedata.category(char) in ("Lu", "Ll", "Lo") and not unicodedata.decomposition(char)
    return letter and not adorned and char not in TWINS_BY_EYE and len(glyphs._fonts_with(char)) >= 2


def differences(chars: list[str]) -> np.ndarray:
    """How unlike each pair is, 0 the same to 1, (n, n): the least over the faces of one and of the other."""
    least = np.ones((len(chars), len(chars)), np.float32)
    faces = dict(zip(glyphs._FACES, glyphs._fonts(), strict=True))
    drawn = [
        (i, np.asarray(glyphs._fitted(char, font)) > 127)
        for font, codes in (faces[face] for face in FACES_COMPARED)
        for i, char in enumerate(chars)
        if ord(char) in codes
    ]
    rows, ink = (np.stack(column) for column in zip(*drawn, strict=True))
    np.minimum.at(least, np.ix_(rows, rows), _ink_apart(ink))
    return least


def _ink_apart(ink: np.ndarray) -> np.ndarray:
    y, x = np.ogrid[-REACH : REACH + 1, -REACH : REACH + 1]
    wide = binary_dilation(ink, (y**2 + x**2 <= REACH**2)[None])
    flat, wide = (stack.reshape(len(ink), -1).astype(np.float32) for stack in (ink, wide))
    outside = 1 - (flat @ wide.T) / flat.sum(axis=1, keepdims=True)
    return np.maximum(outside, outside.T)


def test_table_follows_the_rule():
    pool = [char for split in glyphs.SCRIPTS.values() for script in split for char in candidates(script)]
    kept = set(_characters("train") + _characters("test"))
    assert kept <= set(pool)
    apart = differences(pool)
    is_kept = np.array([char in kept for char in pool])
    for i, char in enumerate(pool):
        nearest = apart[i, :i][is_kept[:i]].min(initial=1.0)
        assert nearest > ALIKE - SLACK if is_kept[i] else nearest < ALIKE + SLACK, (char, nearest)


def test_splits_share_no_script_and_no_character():
    assert not glyphs.scripts("train").keys() & glyphs.scripts("test").keys()
    every = _characters("train") + _characters("test")
    assert len(set(every)) == len(every)
    assert 200 <= len(_characters("train")) <= 310
    assert 200 <= len(_characters("test")) <= 310


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_character_has_ink_in_two_faces_or_more(split):
    for char in _characters(split):
        fonts = glyphs._fonts_with(char)
        assert len(fonts) >= 2, char
        assert all(np.asarray(glyphs._fitted(char, font)).any() for font in fonts), char


def test_pictures_come_ordered_by_class():
    images = glyphs.load("test", per_class=3, size=24, max_classes=10)
    assert images.pixels.shape == (30, 24, 24)
    assert images.pixels.dtype == np.uint8
    assert images.labels.tolist() == np.repeat(images.labels[::3], 3).tolist()
    script, char = images.labels[0].split(" ")
    assert char in glyphs.scripts("test")[script]


def test_same_seed_same_pictures_even_in_another_process():
    seen = _run(
        "import zlib; from entourage.data.sets import glyphs; "
        "print(zlib.crc32(glyphs.load('train', max_classes=5).pixels.tobytes()))"
    )
    assert int(seen) == zlib.crc32(glyphs.load("train", max_classes=5).pixels.tobytes())


def test_another_seed_gives_other_pictures_of_the_same_classes():
    one, other = (glyphs.load("test", max_classes=4, seed=seed) for seed in (0, 1))
    assert (one.labels == other.labels).all()
    assert (one.pixels != other.pixels).any(axis=(1, 2)).all()


def test_a_class_looks_the_same_in_any_subset():
    few, many = (glyphs.load("train", per_class=4, max_classes=count) for count in (7, 21))
    shared = np.isin(many.labels, few.labels)
    assert np.unique(few.labels).size == 7
    assert (many.labels[shared] == few.labels).all()
    assert (many.pixels[shared] == few.pixels).all()


def test_a_subset_reaches_over_the_scripts():
    labels = glyphs.load("test", per_class=1, max_classes=40).labels
    assert {label.split(" ")[0] for label in labels} == glyphs.scripts("test").keys()


def test_more_classes_than_there_are_means_all():
    assert len(glyphs.load("train", per_class=1, max_classes=10_000)) == len(_characters("train"))


@pytest.mark.parametrize("split", ["train", "test"])
def test_glyphs_are_white_on_black_centred_and_not_clipped(split):
    pixels = glyphs.load(split, per_class=4).pixels.astype(float)
    rim = np.ones(pixels.shape[1:], bool)
    rim[1:-1, 1:-1] = False
    assert (pixels[:, rim] > 128).any(axis=1).mean() < 0.01
    ink = (pixels > 128).mean(axis=(1, 2))
    assert ink.min() > 0.015
    assert ink.max() < 0.5
    rows = (pixels.sum(axis=2) * np.arange(32)).sum(axis=1) / pixels.sum(axis=(1, 2))
    assert abs(rows.mean() - 15.5) < 1


def test_raw_pixels_recognise_a_character_often_but_not_always():
    images = glyphs.load("test", per_class=10)
    vectors = images.pixels.reshape(len(images), -1).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1)
    recall = (images.labels[similarity.argmax(axis=1)] == images.labels).mean()
    assert 0.3 < recall < 0.65


def test_progress_is_told_after_each_class():
    told = []
    glyphs.load("train", per_class=1, max_classes=3, progress=lambda *step: told.append(step))
    assert told == [("drawing glyphs", done, 3) for done in (1, 2, 3)]


def test_an_unknown_split_is_named():
    with pytest.raises(InputError, match="unknown split 'dev' of glyphs; wanted one of train, test"):
        glyphs.load("dev")


@pytest.mark.parametrize("setting", [{"per_class": 0}, {"size": 0}, {"seed": -1}, {"max_classes": 0}])
def test_a_setting_out_of_range_is_named(setting):
    (name, value), *_ = setting.items()
    with pytest.raises(InputError, match=f"{name} is {value}"):
        glyphs.load("train", **setting)


def test_every_picture_has_an_id_of_its_own_over_both_splits():
    train, test = (glyphs.load(split, per_class=2, max_classes=3) for split in ("train", "test"))
    assert train.ids[:3].tolist() == [f"{train.labels[0]} 0", f"{train.labels[0]} 1", f"{train.labels[2]} 0"]
    assert len({*train.ids, *test.ids}) == 12


def test_datasets_load_by_name():
    by_name = data.load("glyphs", "test", per_class=1, max_classes=2)
    assert (by_name.pixels == glyphs.load("test", per_class=1, max_classes=2).pixels).all()


def test_an_unknown_dataset_is_named():
    with pytest.raises(InputError, match=r"'glyfs'.*glyphs"):
        data.load("glyfs", "train")


def test_importing_the_datasets_loads_no_drawing_library():
    seen = _run("import sys, entourage.data.sets.glyphs; print({'matplotlib', 'PIL', 'scipy'} & set(sys.modules))")
    assert seen == "set()"


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _characters(split: str) -> str:
    return "".join(glyphs.scripts(split).values())
