"""Devices by name."""

import subprocess
import sys

import pytest
import torch

from entourage.errors import InputError
from entourage.runtime import devices
from entourage.runtime.devices import chosen_device, device_named, graphics_card, on_device


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


def test_what_works_in_a_block_works_on_its_device(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with on_device("cuda:1"):
        assert graphics_card() == chosen_device() == torch.device("cuda", 1)
        with on_device("cpu"):
            assert graphics_card() is None and chosen_device() == torch.device("cpu")
        assert graphics_card() == torch.device("cuda", 1)
    assert graphics_card() == torch.device("cuda", 0)
    with pytest.raises(InputError, match="wanted auto, cpu"), on_device("abacus"):
        raise AssertionError("the block must not begin")


def test_a_card_is_asked_of_torch_where_it_is_loaded(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert graphics_card() is None
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert graphics_card() == torch.device("cuda", 0)


@pytest.mark.parametrize(("driver", "loaded"), [(False, False), (True, True)])
def test_torch_is_loaded_only_where_a_driver_lets_it_hope_for_a_card(driver, loaded):
    code = "import sys; from entourage.runtime import devices\n"
    code += f"devices._has_driver = lambda: {driver}\n"
    code += "devices.graphics_card(); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == f"{loaded}\n"


def test_a_driver_without_torch_is_no_card(monkeypatch):
    monkeypatch.setattr(devices, "_has_driver", lambda: True)
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python says of a library that is not installed
    assert graphics_card() is None


@pytest.mark.parametrize(("library", "there"), [("libc.so.6", True), ("libnothing.so.1", False)])
@pytest.mark.skipif(sys.platform != "linux", reason="libraries have other names elsewhere")
def test_a_driver_is_a_library_that_can_be_loaded(monkeypatch, tmp_path, library, there):
    monkeypatch.setattr(devices, "_CUDA_DRIVERS", (library,))
    monkeypatch.setattr(devices, "_AMD_DRIVER", tmp_path / "kfd")
    assert devices._has_driver.__wrapped__() is there
    (tmp_path / "kfd").touch()
    assert devices._has_driver.__wrapped__() is True
