"""`entourage report`."""

import pytest
from tests.cli.shop import run

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def kept(inside, tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.report.drawing.SHOWN", ("steps",))  # the others are drawn in tests/report
    folder = tmp_path / "kept"
    refined = run(f"refine v.npz --model model --out {tmp_path}/refined.npz --run {folder}")
    assert refined.exit_code == 0, refined.stderr
    return folder


def test_a_run_is_reported_inside_itself_or_elsewhere(kept, tmp_path):
    result = run(f"report {kept}")
    assert (result.exit_code, result.stdout) == (0, f"Written to {kept}/report.html\n")
    assert "class 3" in (kept / "report.html").read_text(encoding="utf-8")
    again = run(f"report {kept}")
    assert again.exit_code == 2 and "exists already" in again.stderr and again.stderr.count("\n") == 1
    other = tmp_path / "other.html"
    assert run(f"report {kept} --out {other} --seed 1").exit_code == 0 and other.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("v.npz", "is no run"),
        ("nowhere", "does not exist"),
        ("model", "is no run"),
    ],
)
def test_what_is_no_run_is_one_sentence(inside, arguments, said):
    result = run(f"report {arguments}")
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1


def test_another_ending_is_one_sentence(kept, tmp_path):
    result = run(f"report {kept} --out {tmp_path}/report.pdf")
    assert result.exit_code == 2 and "ends in .html" in result.stderr
