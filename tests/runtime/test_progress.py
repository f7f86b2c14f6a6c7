"""Progress: bars with clocks of their own in a terminal, few lines elsewhere, and the same in the log."""

import importlib
import inspect
import logging
import pkgutil
import re
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest
from typer.testing import CliRunner

import entourage
from entourage import ContextRefiner, search, systems
from entourage.cli import app
from entourage.errors import InputError
from entourage.runtime.display import Lines, Stage, bars, patient_lines
from entourage.runtime.progress import reported, shows_progress, terminal_progress


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lines(clock):
    written = []
    return Lines(written.append, clock), written


# ---- lines ---------------------------------------------------------------------------------------------------------


def test_a_line_when_work_begins_then_one_in_five_seconds_with_the_time_left_and_one_at_the_end(clock, lines):
    show, written = lines
    for done in range(101):
        show("searching", done, 100)
        clock.now += 0.25
    assert written == [
        "searching",
        "searching: 20 %, 20 s left",
        "searching: 40 %, 15 s left",
        "searching: 60 %, 10 s left",
        "searching: 80 %, 5 s left",
        "searching: done in 25 s",
    ]


def test_short_work_takes_one_line_however_often_it_is_done(clock, lines):
    show, written = lines
    for _ in range(20):
        for done in range(4):
            show("searching", done, 3)
        clock.now += 0.1
    assert written == ["searching"]


def test_what_changes_in_brackets_is_said_now_and_then_and_what_was_kept_always(clock, lines):
    show, written = lines
    for epoch in range(1, 5):
        show(f"training (epoch {epoch}/4)", epoch, 4)
        clock.now += 3
    show("training (kept epoch 2, R@1 25.6 %)", 4, 4)
    assert written == [
        "training (epoch 1/4)",
        "training (epoch 3/4): 75 %, 3 s left",
        "training (epoch 4/4): done in 9 s",
        "training (kept epoch 2, R@1 25.6 %): done in 9 s",
    ]


def test_what_is_soon_done_writes_nothing_and_what_is_not_says_what_is_going_on():
    quick, slow = [], []
    with patient_lines(quick.append, seconds=30) as show:
        show("searching", 0, 2)
        show("searching", 2, 2)
    assert quick == []
    with patient_lines(slow.append, seconds=0.05) as show:
        show("comparing (raw)", 0, 4)
        show("comparing (relational)", 1, 4)
        deadline = time.monotonic() + 10
        while not slow and time.monotonic() < deadline:  # no report comes meanwhile
            time.sleep(0.01)
        show("searching", 0, 9)
    assert [line.partition(":")[0] for line in slow] == ["comparing (relational)", "searching"]


# ---- time ----------------------------------------------------------------------------------------------------------


def test_the_clock_of_a_stage_stops_at_its_end_and_more_of_its_kind_begins_anew():
    stage = Stage("searching", 0, 2, now=0.0)
    stage.update("searching", 2, 2, now=99.0)
    assert stage.elapsed(now=500.0) == 99
    assert stage.goes_on_with(2, 2) and not stage.goes_on_with(0, 2) and not stage.goes_on_with(2, 5)


def test_parts_done_before_a_resumed_work_began_say_nothing_of_its_speed():
    stage = Stage("embedding", 90, 100, now=0.0)
    assert stage.left(now=1.0) is None
    stage.update("embedding", 95, 100, now=50.0)
    assert stage.left(now=50.0) == 50


def test_methods_that_are_compared_say_nothing_of_how_long_the_next_will_take():
    stage = Stage("comparing (raw, seed 0)", 0, 4, now=0.0)
    stage.update("comparing (relational, seed 0)", 3, 4, now=12.0)  # and then it takes a minute
    assert stage.left(now=12.0) is None and stage.elapsed(now=99.0) == 99


def last_frame(text: str) -> list[str]:
    """The lines that remain on the screen."""
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.replace("\x1b[2K", "\0"))
    return [" ".join(line.rpartition("\0")[2].split()) for line in plain.replace("\r", "").splitlines()]


def test_every_bar_shows_its_own_time(clock, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with bars(clock) as show:
        show("comparing (raw, seed 0)", 0, 3)
        for _ in range(2):  # the second search begins at 0:00 again
            show("searching", 0, 10)
            clock.now += 4
            show("searching", 10, 10)
        for done, seconds in ((1, 2), (2, 89)):  # cheap methods first; then one that takes long
            show(f"comparing (method {done}, seed 0)", done, 3)
            clock.now += seconds
        show("comparing", 3, 3)
        clock.now += 1000
    shown = last_frame(capsys.readouterr().err)
    assert [line for line in shown if line.endswith("3/3 0:01:39")], shown
    assert [line for line in shown if line.startswith("searching") and line.endswith("10/10 0:00:04")], shown


def test_an_estimate_that_time_has_overtaken_is_not_shown(clock, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for waited, shown in ((2, "2/4 0:00:08, 0:00:04 left"), (99, "2/4 0:01:45")):
        with bars(clock) as show:
            show("embedding (shard 1)", 0, 4)
            clock.now += 6
            show("embedding (shard 2)", 2, 4)
            clock.now += waited
        assert last_frame(capsys.readouterr().err)[-1].endswith(shown)


def test_a_narrow_terminal_shows_a_share_instead_of_a_bar_in_one_line(clock, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    with bars(clock) as show:
        show("searching neighbours", 0, 30000)
        clock.now += 2
        show("searching neighbours", 15000, 30000)
    assert last_frame(capsys.readouterr().err)[-1] == "searching neighbours 50% 0:00:02, 0:00:02 left"


# ---- where it goes -------------------------------------------------------------------------------------------------


def test_where_standard_error_is_no_terminal_lines_are_written(capsys):
    with terminal_progress() as progress:
        progress("searching", 0, 2)
    with terminal_progress(log=False) as progress:
        progress("searching", 0, 2)
    assert capsys.readouterr() == ("", "searching\n")


@pytest.mark.parametrize("command", ["evaluate v.npz", "doctor v.npz", "compare v.npz --methods raw", "refine v.npz"])
@pytest.mark.parametrize("as_json", [False, True])
def test_commands_that_take_long_write_lines_unless_json_is_asked_for(command, as_json, sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("entourage.runtime.progress.patient_lines", lambda write, seconds: nullcontext(Lines(write)))
    np.savez("v.npz", vectors=sample[0], labels=sample[1])
    options = ["--out", "o.npz"] * command.startswith("refine") + ["--json"] * as_json
    outcome = CliRunner().invoke(app, [*command.split(), *options])
    assert outcome.exit_code == 0
    lines = [line for line in outcome.stderr.splitlines() if not line.startswith("warning: ")]
    assert (lines == []) == as_json, outcome.stderr


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
def test_the_log_gets_the_same_lines_if_anyone_reads_it(caplog, level):
    caplog.set_level(level, "entourage")
    seen = []
    with reported(lambda *report: seen.append(report)) as outer, reported(outer) as inner:  # one call in another
        inner("searching", 0, 2)
        inner("searching", 2, 2)
    with reported(None) as progress:
        assert (progress is None) == (level > logging.INFO)
        if progress:
            progress("refining", 0, 1)
    assert seen == [("searching", 0, 2), ("searching", 2, 2)]
    assert caplog.messages == (["searching", "refining"] if level == logging.INFO else [])


@pytest.mark.usefixtures("short_rehearsals", "one_thread")
def test_a_fit_logs_its_stages_and_leaves_its_searches_to_those_who_debug(caplog):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 10)
    X = rng.normal(size=(12, 16))[y] + 0.5 * rng.normal(size=(120, 16))
    caplog.set_level(logging.DEBUG, "entourage")
    refiner = ContextRefiner().fit(X, y)
    said = [(record.levelno, record.getMessage()) for record in caplog.records]
    stages = [line for level, line in said if level == logging.INFO and not line.startswith("compiling")]
    assert stages[0] == "preparing rehearsals" and 3 <= len(stages) <= 15 and "searching neighbours" not in stages
    assert said.count((logging.DEBUG, "searching neighbours")) > 15
    caplog.clear()
    for _ in refiner.iter_steps(X):
        search(X, k=2)  # the caller's own, while the steps wait
    heard = [r.levelno for r in caplog.records if r.getMessage() == "searching neighbours"].count(logging.INFO)
    assert heard >= refiner.n_steps_ + 1


def test_what_is_no_progress_is_refused():
    with pytest.raises(InputError, match="progress is 'yes'; wanted True, False or a callable"), reported("yes"):
        pass


def test_without_logging_set_up_nothing_is_said():
    code = "import numpy as np, entourage; entourage.search(np.eye(9), k=2)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


# ---- every call that takes a progress ------------------------------------------------------------------------------

PUBLIC = ["ContextRefiner", "PaperRefiner", "compare", "doctor", "evaluate", "search"]


def calls_with_progress():
    """Public functions, and methods of public classes, with a keyword `progress`."""
    for name in entourage.__all__:
        value = getattr(entourage, name)
        members = inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else [(name, value)]
        for member, call in members:
            if (
                not member.startswith(("_", "set_"))
                and callable(call)
                and "progress" in inspect.signature(call).parameters
            ):
                yield f"{name}.{member}", call
    for found in pkgutil.walk_packages(systems.__path__, "entourage.systems."):
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            if name.startswith("train_"):
                yield f"{found.name}.{name}", getattr(module, name)


def test_every_public_call_that_takes_a_progress_takes_true_and_says_so():
    calls = dict(calls_with_progress())
    assert {name.split(".")[0] for name in calls} >= set(PUBLIC)
    assert [name for name, call in calls.items() if not is_decorated(call)] == []


def is_decorated(call) -> bool:
    """Whether shows_progress is among what wraps a function, beneath scikit-learn's own wrapping."""
    own = shows_progress.__code__.co_filename
    return call.__code__.co_filename == own or (hasattr(call, "__wrapped__") and is_decorated(call.__wrapped__))


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 8)
    return rng.normal(size=(6, 8))[y] + 0.5 * rng.normal(size=(48, 8)), y


@pytest.mark.parametrize(
    ("call", "title"),
    [
        (lambda X, y: entourage.search(X, progress=True), "searching neighbours"),
        (lambda X, y: entourage.evaluate(X, y, nmi=False, progress=True), "ranking"),
        (lambda X, y: entourage.doctor(X, y, progress=True), "ranking"),
        (lambda X, y: entourage.compare(X, y, ["alpha-qe-8-3"], progress=True), "comparing (raw, seed 0)"),
        (lambda X, y: entourage.ContextRefiner(3).fit(X, progress=True), "searching neighbours"),
        (lambda X, y: entourage.ContextRefiner(3).fit_transform(X, progress=True), "refining"),
        (lambda X, y: entourage.ContextRefiner(3).fit(X).transform(X, progress=True), "searching neighbours"),
        (
            lambda X, y: entourage.ContextRefiner(3).fit(X).transform_both(X[:9], X, progress=True),
            "searching neighbours",
        ),
        (lambda X, y: entourage.ContextRefiner(3).fit(X).serve(X, progress=True), "searching neighbours"),
        (lambda X, y: list(entourage.ContextRefiner(3).fit(X).iter_steps(X, progress=True)), "refining"),
    ],
)
def test_true_shows_progress_on_standard_error(call, title, sample, capsys):
    call(*sample)
    assert title in capsys.readouterr().err.splitlines()


def test_a_decorated_call_keeps_its_signature():
    @shows_progress
    def work(x, *, progress=None):
        return x, progress

    assert list(inspect.signature(work).parameters) == ["x", "progress"]
    assert work(3) == (3, None)
