"""A Hugging Face folder that brings code of its own, or names a repository with some: it is never run.

Tried: auto_map with an unknown model_type, with a known one, in config.json and in the config of a saved encoder; the
answer "yes" to every question; attn_implementation, experts_implementation and their internal names with owner/name,
in the config, within vision_config, and as a table.
"""

import json
import os
import subprocess
import sys

import pytest
from tests.attacks.victims import GLYPHS
from tests.encoders.tiny_models import tiny

from entourage.encoders import build_encoder, load_encoder, save_encoder
from entourage.encoders.hub import check_config
from entourage.errors import EntourageError, ModelError

CODE = """
from pathlib import Path
Path(__file__).with_name("sprung").touch()
Path({mark!r}).touch()
from transformers import ViTConfig, ViTModel
class TrapConfig(ViTConfig): model_type = {kind!r}
class TrapModel(ViTModel): config_class = TrapConfig
"""
AUTO_MAP = {"AutoConfig": "trap.TrapConfig", "AutoModel": "trap.TrapModel"}


@pytest.fixture
def folder(tmp_path):
    tiny("vit").save_pretrained(tmp_path / "vit")
    return tmp_path / "vit"


def set_trap(folder, kind: str) -> None:
    (folder / "trap.py").write_text(CODE.format(mark=str(folder.parent / "sprung"), kind=kind))
    change_config(folder, {"auto_map": AUTO_MAP, "model_type": kind})


def change_config(folder, changes: dict) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def sprung(folder) -> bool:
    return bool(list(folder.parent.rglob("sprung")))


@pytest.mark.attack
def test_the_trap_would_spring_if_code_were_trusted(folder, tmp_path, monkeypatch):
    set_trap(folder, "trap")
    code = f"import transformers; transformers.AutoConfig.from_pretrained({str(folder)!r}, trust_remote_code=True)"
    cache = os.environ | {"HF_MODULES_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=cache)
    assert sprung(folder)


@pytest.mark.parametrize("kind", ["trap", pytest.param("vit", marks=pytest.mark.attack)])
def test_code_of_a_folder_is_not_run_even_if_every_question_is_answered_yes(folder, kind):
    set_trap(folder, kind)
    line = [sys.executable, "-m", "entourage", "embed", *GLYPHS.split(), "--model", str(folder)]
    done = subprocess.run(
        [*line, "--out", str(folder.parent / "out.npz")],
        input="yes\n" * 100,
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert not sprung(folder)
    assert done.returncode == (2 if kind == "trap" else 0), done.stderr  # transformers has a ViT of its own
    assert "Traceback" not in done.stderr and (kind == "vit" or "no code of a model is ever run" in done.stderr)


@pytest.mark.parametrize(
    "change",
    [
        {"attn_implementation": "owner/kernel"},
        {"_attn_implementation": "owner/kernel:flash"},
        {"_attn_implementation_internal": "owner/kernel"},
        {"attn_implementation": {"": "owner/kernel"}},
        {"vision_config": {"attn_implementation": "owner/kernel"}},
        {"experts_implementation": "owner/kernel"},
    ],
    ids=str,
)
def test_a_repository_of_kernels_is_refused_wherever_it_is_named(folder, change):
    with pytest.raises(ModelError, match="code of another repository, which is never run"):
        check_config(json.loads((folder / "config.json").read_text()) | change)
    change_config(folder, change)
    with pytest.raises(EntourageError, match="which is never run"):
        build_encoder(str(folder))


def test_a_saved_encoder_asks_for_no_code_either(folder, tmp_path):
    save_encoder(tmp_path / "saved", build_encoder(str(folder)))
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    config["model"]["attn_implementation"] = "owner/kernel"
    (tmp_path / "saved" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="which is never run"):
        load_encoder(tmp_path / "saved")
