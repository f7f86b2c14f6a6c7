# %% [markdown]
# # A million vectors
#
# What does not fit into memory is refined from file to file: neighbours by an index of faiss, weights, steps, each
# kept on disk, so that whoever is interrupted goes on with `--resume`. `pip install 'entourage[faiss]'`.
# `ITEMS=1000000` makes it a million; the result beside this script is of a hundred thousand.

# %%
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from entourage import evaluate

ITEMS, DIM, PER_CLASS = int(os.environ.get("ITEMS", 100_000)), 64, 50
os.chdir(tempfile.mkdtemp())

# %% [markdown]
# **A file of vectors**, in half precision and written block by block: classes of fifty around centres of their own.

# %%
rng = np.random.default_rng(0)
labels = np.arange(ITEMS) // PER_CLASS
centres = rng.normal(size=(labels[-1] + 1, DIM)).astype(np.float32)
vectors = np.lib.format.open_memmap("vectors.npy", "w+", np.float16, (ITEMS, DIM))
for start in range(0, ITEMS, 50_000):
    block = labels[start : start + 50_000]
    vectors[start : start + 50_000] = centres[block] + 1.7 * rng.normal(size=(len(block), DIM))
vectors.flush()
print(f"{ITEMS:,} vectors, {vectors.nbytes / 2**20:.0f} MiB")

# %% [markdown]
# **Refine the file into another.** The protocol says how the neighbours were found, and with what recall.

# %%
line = "refine vectors.npy --out refined.npy --search IVF256,Flat --json"
done = subprocess.run([sys.executable, "-m", "entourage", *line.split()], stdout=subprocess.PIPE, check=True)
protocol = json.loads(done.stdout)["protocol"]
print("approximate neighbours:", any("approximate" in str(value) for value in protocol.values()))

# %% [markdown]
# **Judge a sample**: the first hundred classes as queries and gallery.

# %%
sample = slice(0, min(ITEMS, 100 * PER_CLASS))
for name in ("vectors.npy", "refined.npy"):
    scores = evaluate(np.load(name, mmap_mode="r")[sample].astype(np.float32), labels[sample], nmi=False).metrics
    print(f"{name:12} R@1 {100 * scores['recall@1']:.1f}  MAP@R {100 * scores['map@r']:.1f}")

# %% [markdown]
# Beyond one machine, folders of Parquet files are refined on a Ray cluster: `entourage refine FOLDER --engine ray`.
