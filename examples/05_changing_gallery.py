# %% [markdown]
# # A gallery that changes
#
# Items come and go every hour. `Gallery` keeps raw and refined vectors in a folder, refines again only what a change
# reaches, and tells your own index exactly which vectors have moved. The core installation is enough.

# %%
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from entourage import Gallery

X, y = load_digits(return_X_y=True)
gallery = Gallery(Path(tempfile.mkdtemp()) / "shop", encoder="pixels")  # made, or opened if it is there

# %% [markdown]
# **The first load.** Everything is refined; your index takes all of it.

# %%
gallery.add(X[:1500], ids=range(1500))
changes = gallery.changes_since(0)
index = dict(zip(changes.ids.tolist(), changes.vectors, strict=True))
print(len(index), "vectors for the index, version", changes.version)

# %% [markdown]
# **An hour later** ten items arrive and two are gone. Only what these reach moves; the rest of the index stays.

# %%
gallery.add(X[1500:1510], ids=range(1500, 1510))
report = gallery.remove([7, 8])
later = gallery.changes_since(changes.version)
for gone in later.removed.tolist():
    del index[gone]
index.update(zip(later.ids.tolist(), later.vectors, strict=True))
print(len(later.ids), "of", len(index), "vectors are sent to the index,", len(later.removed), "are taken out")

# %% [markdown]
# **Queries** are refined by the raw gallery and searched among refined items: by the gallery itself, or by your index.

# %%
queries, wanted = X[1600:1700], y[1600:1700]
found = gallery.search(queries, k=10)
print(f"right among the first ten: {100 * np.mean(y[found.ids.astype(int)] == wanted[:, None]):.1f} %")

vectors = np.array(list(index.values()))
nearest = np.array(list(index))[np.argsort(-(gallery.refine(queries) @ vectors.T), axis=1)[:, :10]]
print(f"by the index, kept up to date: {100 * np.mean(y[nearest.astype(int)] == wanted[:, None]):.1f} %")
gallery.close()

# %% [markdown]
# `entourage serve --gallery shop` puts the same folder behind HTTP.
