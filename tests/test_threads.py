"""Work is shared out once and whole, among no more threads than torch uses."""

import threading

import pytest
import torch

from entourage.threads import share_out


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


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
