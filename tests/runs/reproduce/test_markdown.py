"""Tables as text: the paper's figures, ours and the difference; at small scale what a row gains."""

from entourage.runs.reproduce.markdown import aligned, measured_text, printed_text, table_text
from entourage.runs.reproduce.results import Results
from entourage.runs.reproduce.scale import Scale
from entourage.runs.reproduce.tables import tables


def measured(tmp_path, table: str, scale: str, dataset: str, rows: dict) -> Results:
    results = Results(tmp_path / f"{table}.json", table, scale)
    for row, by_seed in rows.items():
        for seed, values in enumerate(by_seed):
            results.add(dataset, row, seed, {"of": "x", "seconds": 1.0, "values": values})
    return Results(tmp_path / f"{table}.json", table, scale)  # read again


def cells(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_as_printed_a_difference_stands_beside_both(tmp_path):
    rows = {"MS-Loss": [{"recall@1": 0.670}, {"recall@1": 0.674}], "relational (MS-Loss)": [{"recall@1": 0.7}]}
    results = measured(tmp_path, "attend-3", "full", "cub", rows)
    text = table_text(tables()["attend-3"], results, Scale(), ["cub"])
    assert cells(text, "MS-Loss") == ["67.5", "67.2 ± 0.3", "−0.3"]
    assert cells(text, "Margin 512") == ["63.1", "", ""]
    assert cells(text, "relational (MS-Loss) (not in the paper)") == ["", "70.0", ""]
    assert "R@1 paper (cub)" in text and "R@1 ours (cub)" in text and "R@1 difference" in text


def test_small_tables_show_gains_over_the_first_row(tmp_path):
    rows = {"MS-Loss": [{"recall@1": 0.9, "map@r": 0.5}], "Ours (MS-Loss)": [{"recall@1": 0.89, "map@r": 0.6}]}
    results = measured(tmp_path, "attend-3", "small", "glyphs", rows)
    text = table_text(tables("small")["attend-3"], results, Scale("small"), ["glyphs"])
    assert cells(text, "Ours (MS-Loss)") == ["73.2", "89.0", "+5.7 / −1.0", "", "60.0", "- / +10.0"]
    assert measured_text(tables("small")["attend-3"], results, Scale("small")).count("\n") == 4


def test_many_metrics_become_lines_and_dashes_stay_dashes(tmp_path):
    values = {f"learner {n}": 0.3 for n in range(1, 9)} | {
        "mean of learners": 0.3,
        "recall@1": 0.76,
        "correlation": 0.05,
    }
    results = measured(tmp_path, "divide-s1", "full", "sop", {"Ours": [values]})
    text = table_text(tables()["divide-s1"], results, Scale(), ["sop"])
    assert cells(text, "correlation")[3:6] == ["0.0498", "0.0500", "+0.0002"]
    assert cells(text, "learner 1")[:6] == ["37.0", "", "", "29.6", "30.0", "+0.4"]
    printed = printed_text(tables()["attend-2"])
    assert cells(printed, "XBM 128 Wang et al. (2020), BNI") == [
        "65.8",
        "75.9",
        "-",
        "82.0",
        "88.7",
        "-",
        "80.6",
        "91.6",
        "-",
    ]
    assert printed_text(tables()["attend-fig3"]) == ""


def test_a_grid_is_a_matrix_and_steps_are_lines(tmp_path):
    results = measured(tmp_path, "attend-s-fig1", "quick", "glyphs", {"2 x 8": [{"recall@1": 0.5}]})
    text = table_text(tables("quick")["attend-s-fig1"], results, Scale("quick"), ["glyphs"])
    assert cells(text, "2") == ["", "50.0"] and cells(text, "8") == ["", ""]
    by_step = {"recall@1": 0.6, "recall@1 by step": [0.5, 0.6]}
    results = measured(tmp_path, "attend-fig3", "quick", "glyphs", {"Ours": [by_step]})
    text = table_text(tables("quick")["attend-fig3"], results, Scale("quick"), ["glyphs"])
    assert (cells(text, "0"), cells(text, "1")) == (["50.0"], ["60.0"])


def test_columns_are_as_wide_as_they_must_be():
    assert aligned([["", "a"], ["row", "12.5"]]) == "|     | a    |\n|-----|------|\n| row | 12.5 |\n"
