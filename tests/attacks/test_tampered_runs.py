"""Run folders in which one thing was changed, as in test_tampered_models.py, then reported on and drawn.

A report must be written whole, with a sentence in the place of a figure that cannot be drawn, or be refused in one
sentence.
"""

import pytest
from tests.attacks.attacking import attack

from entourage.report import drawing

REPORT = "report {victim} --out {out}/report.html"
REFINEMENTS = {"kept": ("query", "steps", "grid"), "bare": ("drift", "query")}
TRAININGS = {
    "pictures": ("training",),
    "vectors": ("training",),
    "divide": ("training", "learners"),
    "network": ("training",),
    "cross": ("training", "gradients", "attention", "parts"),
}
SAMPLE = 3


@pytest.mark.parametrize("run", REFINEMENTS)
def test_a_tampered_refinement_is_refused_or_reported(refinements, tmp_path, run, monkeypatch):
    monkeypatch.setattr(drawing, "SHOWN", ("query",))  # the others take longer
    assert attack(refinements / run, REPORT, tmp_path, sample=SAMPLE) == []


@pytest.mark.parametrize("run", ["vectors", "network"])
def test_a_tampered_training_is_refused_or_reported(trainings, tmp_path, run, monkeypatch):
    monkeypatch.setattr(drawing, "SHOWN", ("training", "gradients"))
    assert attack(trainings / run, REPORT, tmp_path, sample=SAMPLE) == []


def test_a_tampered_run_is_refused_or_drawn(refinements, tmp_path):
    assert attack(refinements / "kept", "plot sheet {victim} --out {out}/sheet.png", tmp_path, sample=SAMPLE) == []


@pytest.mark.attack
@pytest.mark.parametrize("run", REFINEMENTS)
def test_every_tampering_with_a_refinement(refinements, tmp_path, run, monkeypatch):
    monkeypatch.setattr(drawing, "SHOWN", REFINEMENTS[run])
    assert attack(refinements / run, REPORT, tmp_path) == []


@pytest.mark.attack
@pytest.mark.parametrize("run", TRAININGS)
def test_every_tampering_with_a_training(trainings, tmp_path, run, monkeypatch):
    monkeypatch.setattr(drawing, "SHOWN", TRAININGS[run])
    assert attack(trainings / run, REPORT, tmp_path) == []
