"""Folders of small pictures the commands are tried on, and the shortest training there is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from entourage.cli import app  # noqa: F401  so that its import is not timed by a test

GLYPHS = "glyphs --data-option per_class=4 --data-option max_classes=8"
SMALL = "--dim 8 --image-size 16 --set encoder_options.width=4 --set batch_classes=3 --set batch_per_class=2"
TRAIN = f"{SMALL} --epochs 2 --set validation_share=0"  # so few classes held out would say nothing
CLASSES, PER_CLASS = 12, 4


def write_birds(folder: Path, classes: int = CLASSES, per_class: int = PER_CLASS) -> Path:
    """A folder a class, each class a colour with noise; half of the classes train, the others test."""
    rng = np.random.default_rng(0)
    for number, colour in enumerate(rng.integers(0, 255, (classes, 3))):
        place = folder / f"bird {number:02}"
        place.mkdir(parents=True)
        for shot in range(per_class):
            noise = rng.normal(0, 20, (18, 20, 3))
            Image.fromarray(np.clip(colour + noise, 0, 255).astype(np.uint8)).save(place / f"{shot}.png")
    return folder


def write_table(folder: Path) -> Path:
    """The same pictures as a .csv, the first half of the classes training."""
    lines = ["label,path,split"]
    for number, place in enumerate(sorted(path for path in folder.iterdir() if path.is_dir())):
        split = "train" if number < CLASSES // 2 else "validation"
        lines += [f"{place.name},{place.name}/{file.name},{split}" for file in sorted(place.iterdir())]
    table = folder / "birds.csv"
    table.write_text("\n".join(lines) + "\n")
    return table


def interrupted(arguments: list, ready) -> tuple[int, str]:
    """The command in a process of its own, stopped by Ctrl-C once ready() is true: (exit code, standard error)."""
    # Started from a background shell, Python would ignore Ctrl-C; the handler makes the test the same everywhere.
    start = "import signal; signal.signal(2, signal.default_int_handler); from entourage.cli import main; main()"
    line = [sys.executable, "-c", start, *map(str, arguments)]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    return process.returncode, said
