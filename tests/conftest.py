import pytest
import torch


@pytest.fixture(scope="module")
def one_thread():
    """For small products, which are fastest on one thread and least disturbed by other work on the machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
