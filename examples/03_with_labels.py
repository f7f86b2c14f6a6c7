# %% [markdown]
# # Labels: learn on some classes, gain on others
#
# Labels of some classes teach a refiner what belongs together, and it carries over to classes it has never seen. Here
# it learns from six digits and is judged on the four others. `pip install 'entourage[train]'`.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from entourage import ContextRefiner, compare, evaluate, load_refiner

EVERY = int(os.environ.get("EVERY", 1))  # 3: a third of the items, to be done sooner
X, y = (array[::EVERY] for array in load_digits(return_X_y=True))
seen = y < 6
unseen, truth = X[~seen], y[~seen]

# %% [markdown]
# **Fit.** Six digits teach nothing that beats what is done without labels, so here `fit` keeps to that; with dozens of
# classes labels gain much more (see the table of the README). Settings are chosen in rehearsals, on classes that are
# held out of the six. `context=` says among whom items look: here the unseen ones among themselves.

# %%
refiner = ContextRefiner(random_state=0).fit(X[seen], y[seen])
refined = refiner.transform(unseen, context=unseen)
universal = ContextRefiner().fit_transform(unseen)
for name, vectors in (("raw", unseen), ("without labels", universal), ("with labels", refined)):
    scores = evaluate(vectors, truth).metrics
    print(f"{name:15} R@1 {100 * scores['recall@1']:.1f}  MAP@R {100 * scores['map@r']:.1f}")

# %% [markdown]
# **Keep it.** A model is a folder of JSON and safetensors; loading it runs no code, and it refines without PyTorch.

# %%
with tempfile.TemporaryDirectory() as folder:
    refiner.save(Path(folder) / "my-refiner")
    loaded = load_refiner(Path(folder) / "my-refiner")
    same = np.allclose(loaded.transform(unseen, context=unseen), refined, atol=1e-6)
    print("loaded again, it gives the same vectors:", same)

# %% [markdown]
# **Is it better than what else one could do?** `compare` tunes every method on held-out training classes and scores all
# of them under one protocol. Two simple rivals stand here for all that there are.

# %%
split = np.where(seen, "train", "test")
results = compare(X, y, methods=["within-class-whitening", "alpha-qe", "universal", "relational"], split=split)
for result in results.results:
    print(f"{result.method:12} MAP@R {100 * result.per_query['map@r'].mean():.1f}")
