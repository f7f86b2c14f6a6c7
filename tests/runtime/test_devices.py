"""Devices by name."""

import pytest
import torch

from entourage.errors import InputError
from entourage.runtime.devices import device_named


def test_auto_is_a_card_where_there_is_one(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert device_named("auto") == torch.device("cpu")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert device_named("auto") == torch.device("cuda", 0)
    assert device_named("cuda:1") == torch.device("cuda", 1)


def test_each_process_of_a_machine_has_a_card_of_its_own(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("entourage.runtime.distributed.local_rank", lambda: 3)
    assert device_named("cuda") == device_named("auto") == torch.device("cuda", 3)
    assert device_named("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize(("name", "said"), [("abacus", "wanted auto, cpu"), ("cuda:1", "finds no CUDA here; use cpu")])
def test_what_is_not_there_is_refused(monkeypatch, name, said):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match=f"the device is '{name}'.*{said}"):
        device_named(name)
