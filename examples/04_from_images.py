# %% [markdown]
# # Images: from pictures to better retrieval
#
# A folder with one folder per class trains a small encoder on half of the classes; pictures of the others become
# vectors and are refined. `pip install 'entourage[train]'`; with `entourage[images]` the encoder may be any vision
# model of Hugging Face (`--encoder NAME`).

# %%
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from entourage.data.sets import glyphs

CLASSES, EPOCHS = int(os.environ.get("CLASSES", 60)), int(os.environ.get("EPOCHS", 8))
os.chdir(tempfile.mkdtemp())


def entourage(line):
    """Run a command, as in a terminal; what it found, as `--json` prints it."""
    command = [sys.executable, "-m", "entourage", *line.split(), "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


# %% [markdown]
# **Pictures.** Characters of several scripts, drawn as if by hand, stand in for your photographs.

# %%
drawn = glyphs.load("test", per_class=10, max_classes=CLASSES)
for row, name in enumerate(drawn.ids):
    place = Path("photos", drawn.labels[row], f"{name}.png")
    place.parent.mkdir(parents=True, exist_ok=True)
    drawn.picture(row).save(place)
print(len(drawn), "pictures in", len(list(Path("photos").iterdir())), "folders")

# %% [markdown]
# **Train** on half of the classes, **embed** the others. A run that is interrupted goes on with `--resume`.

# %%
entourage(f"train photos --out run --epochs {EPOCHS}")
entourage("embed photos --model run --out test.npz")

# %% [markdown]
# **Refine**, and judge both on classes that neither the encoder nor the refiner has seen.

# %%
entourage("refine test.npz --out refined.npz")
for name in ("test.npz", "refined.npz"):
    scores = entourage(f"evaluate {name}")["metrics"]
    print(f"{name:12} R@1 {100 * scores['recall@1']:.1f}  MAP@R {100 * scores['map@r']:.1f}")

# %% [markdown]
# `entourage refine test.npz --pictures photos --run kept` keeps the refinement, `entourage report kept` draws it as a
# page, and `entourage explore kept` opens it in the browser.
