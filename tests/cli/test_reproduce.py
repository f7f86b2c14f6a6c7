"""`entourage reproduce`: the list, a table at toy size, and what goes wrong, in a sentence."""

import json

import pytest
from tests.cli.shop import document, run

pytestmark = pytest.mark.usefixtures("one_thread")

TOY = "--quick --data-option max_classes=5 --data-option per_class=6 --set epochs=1 --set refiner.epochs=1"


def test_alone_it_lists_every_table_and_figure():
    shown = run("reproduce")
    assert shown.exit_code == 0
    lines = [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("  ")]
    assert lines[0] == "attend-1" and lines[-1] == "cross-image-s4" and len(lines) == len(set(lines)) == 28
    entries = json.loads(run("reproduce --json").stdout)
    assert [entry["table"] for entry in entries] == lines
    assert entries[2]["rows"][1] == "Ours (MS-Loss)" and entries[2]["page"] == 6


def test_a_table_is_printed_and_written(tmp_path):
    made = run(f"reproduce intra-batch-fig13 --out {tmp_path} {TOY}")
    assert made.exit_code == 0, made.stderr
    folder = tmp_path / "quick"
    files = {path.name for path in folder.iterdir()}
    assert {f"intra-batch-fig13{ending}" for ending in (".md", ".json", "-glyphs.png")} <= files
    assert "Figs 13, 14 of Learning Intra-Batch Connections" in made.stdout
    assert made.stdout.rstrip().endswith(str(folder / "intra-batch-fig13-glyphs.png"))
    again = document(run(f"reproduce intra-batch-fig14 --out {tmp_path} {TOY} --json"))  # another name of it
    assert again["table"] == "intra-batch-fig13" and list(again["measured"]["glyphs"]) == ["without MPN", "with MPN"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("attend-33", "unknown table 'attend-33' of the papers; wanted one of"),
        ("attend-3 --root {tmp}", "attend-3 needs data that are not there: "),
        ("attend-3 --data in_shop", "unknown dataset 'in_shop' of attend-3; wanted one of cub, cars, sop"),
        ("attend-3 --quick --data nothing", "the dataset is 'nothing'; wanted one of"),
        ("attend-3 --quick --set epoch=1", "unknown setting 'epoch' of any system"),
        ("attend-3 --quick --device tpu", "the device is 'tpu'; wanted auto, cpu, cuda or cuda:1"),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(command, message, tmp_path):
    outcome = run(f"reproduce {command.format(tmp=tmp_path)} --out {tmp_path}/out")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"error: {message}") and len(outcome.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
