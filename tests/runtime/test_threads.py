"""Work is shared out once and whole, among no more threads than one setting allows."""

import os
import subprocess
import sys
import threading
from contextlib import nullcontext

import pytest
import torch
from threadpoolctl import threadpool_limits

from entourage.runtime.threads import _libraries, blocks, in_threads, share_out, thread_count


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


# ---- how many ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("three_threads")
def test_where_torch_is_loaded_its_setting_counts(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert thread_count() == 3


@pytest.mark.parametrize(("asked", "count"), [("5", 5), (" 5 ", 5), ("4,2", 4)])
def test_without_torch_the_environment_says_how_many(monkeypatch, asked, count):
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert thread_count() == count


@pytest.mark.parametrize("asked", [None, "", "0", "many"])
def test_without_torch_and_setting_there_are_as_many_as_processors_this_process_may_use(asked):
    """In a process of its own, held to one processor."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {} if asked is None else {"OMP_NUM_THREADS": asked}
    hold = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    hold = hold if hasattr(os, "sched_setaffinity") else "import os; os.environ['LOKY_MAX_CPU_COUNT'] = '1'\n"
    code = (
        "import sys\nfrom entourage.runtime.threads import thread_count\nprint(thread_count(), 'torch' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", hold + code], env=environment, text=True) == "1 False\n"


# ---- in parts ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("n", "parts"), [(0, 1), (1, 1), (9, 1), (20, 2), (31, 3), (1000, 3)])
def test_every_item_is_in_one_part(n, parts):
    seen = []
    share_out(lambda start, stop: seen.append((start, stop)), n, least=10)
    assert len(seen) == parts
    assert [i for start, stop in sorted(seen) for i in range(start, stop)] == list(range(n))


@pytest.mark.usefixtures("three_threads")
def test_one_part_stays_in_the_thread_that_asked_and_one_thread_starts_none():
    names = []
    share_out(lambda *_: names.append(threading.current_thread()), 3000)
    assert names.count(threading.current_thread()) == 1 and len(names) == 3
    torch.set_num_threads(1)
    share_out(lambda *_: names.append(threading.current_thread()), 3000)
    assert names[3:] == [threading.current_thread()]


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("bad_part", [0, 2000])
def test_what_goes_wrong_in_any_part_is_raised(bad_part):
    def work(start, stop):
        if start == bad_part:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        share_out(work, 3000)


# ---- one task after the other, as threads come free --------------------------------------------------------------


@pytest.mark.usefixtures("three_threads")
def test_results_come_in_the_order_of_their_tasks():
    assert list(in_threads(lambda task: task * task, range(50))) == [task * task for task in range(50)]


@pytest.mark.usefixtures("three_threads")
def test_an_error_in_a_thread_arrives():
    def fail(task):
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 0"):
        list(in_threads(fail, range(100)))


@pytest.mark.usefixtures("three_threads")
def test_a_thread_that_works_for_another_shares_nothing_out():
    """Else three threads would be nine."""

    def parts(task):
        seen = []
        share_out(lambda *part: seen.append((threading.current_thread(), *part)), 3000)
        return threading.current_thread(), seen

    for thread, seen in in_threads(parts, range(5)):
        assert seen == [(thread, 0, 3000)]
    seen = []
    share_out(lambda *part: seen.append(part), 3000)
    assert len(seen) == 3  # whoever asked is free again


@pytest.mark.parametrize(("n", "most", "sizes"), [(0, 3, []), (3, 3, [3]), (7, 3, [3, 3, 1])])
def test_blocks_cover_everything_once(n, most, sizes):
    found = list(blocks(n, most))
    assert [block.stop - block.start for block in found] == sizes
    assert [i for block in found for i in range(n)[block]] == list(range(n))


@pytest.mark.usefixtures("three_threads")
def test_a_thread_that_works_for_another_starts_none():
    def threads_of(task):
        return threading.current_thread(), set(in_threads(lambda _: threading.current_thread(), range(10)))

    for thread, used in in_threads(threads_of, range(5)):
        assert used == {thread}


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("fails", [False, True])
def test_afterwards_the_threads_of_numpy_are_as_before_and_anybodys_to_set(fails):
    def work(task):
        if fails and task == 7:
            raise ValueError("no")

    before = [library.get_num_threads() for library in _libraries()]
    with pytest.raises(ValueError, match="no") if fails else nullcontext():
        list(in_threads(work, range(20)))
    assert [library.get_num_threads() for library in _libraries()] == before

    seen = []

    def elsewhere():
        with threadpool_limits(1):
            seen.extend(library.get_num_threads() for library in _libraries())

    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
    assert set(seen) <= {1}
