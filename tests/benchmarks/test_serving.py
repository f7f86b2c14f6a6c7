"""The benchmark of galleries runs in small, and keeps what it measures beside other sizes."""

import importlib.util
import json
import sys
from pathlib import Path

FILE = Path(__file__).parents[2] / "benchmarks" / "serving.py"


def test_changes_are_timed_and_compared_with_a_rebuild(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("serving_benchmark", FILE)
    serving = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serving)
    for items in ("300", "200", "300"):
        line = [
            "serving.py",
            "changes",
            "--items",
            items,
            "--dim",
            "12",
            "--count",
            "9",
            "--out",
            f"{tmp_path}/out.json",
        ]
        monkeypatch.setattr(sys, "argv", line)
        serving.main()
    kept = json.loads((tmp_path / "out.json").read_text())
    assert sorted(each["items"] for each in kept) == [200, 300]
    assert all(each["changes"] == 9 and each["largest difference from a rebuild"] < 1e-5 for each in kept)
