# %% [markdown]
# # No labels: queries, an index, and what it returns
#
# A gallery stands in an index; queries come one at a time. There are two ways in: put refined vectors into the index,
# or leave the index alone and reorder what it returns.

# %%
import numpy as np
from sklearn.datasets import load_digits

from entourage import ContextRefiner, Reranker, search

X, y = load_digits(return_X_y=True)
is_query = np.arange(len(X)) % 10 == 0
gallery, queries = X[~is_query], X[is_query]  # labels, y, only judge the result
truth, wanted = y[~is_query], y[is_query]


def precision(rows):
    """How many of the first ten are of the query's class, in percent."""
    return 100 * np.mean(truth[rows[:, :10]] == wanted[:, None])


raw = search(queries, gallery, k=100)
print(f"raw vectors: {precision(raw.rows):.1f} % of the first ten are right")

# %% [markdown]
# **With a new index.** `serve` does the gallery's part of the work once. Its refined vectors go into your index; each
# query is refined by its neighbours in the raw gallery, and searched there.

# %%
served = ContextRefiner().fit(gallery).serve(gallery)
found = search(served.transform(queries), served.refined_gallery, k=10)
print(f"refined queries in a refined gallery: {precision(found.rows):.1f} %")

# %% [markdown]
# **Without a new index.** Fetch a hundred candidates with their vectors from the index you have, and reorder them.

# %%
reranker = Reranker()
reordered = []
for query, rows in zip(queries, raw.rows, strict=True):
    result = reranker.rerank(query, gallery[rows], ids=rows)
    reordered.append(result.ids[:10])
print(f"a hundred candidates of the raw index, reordered: {precision(np.array(reordered)):.1f} %")

# %% [markdown]
# **Is there a match at all?** Refined cosines of unknown queries come close to 1, so a threshold on them says little.
# The confidence does not depend on them: it stays low for queries that resemble nothing in the gallery.

# %%
noise = np.random.default_rng(0).uniform(0, 16, queries.shape)
print(f"median confidence: {np.median(served.confidence(queries)):.2f} for digits, ", end="")
print(f"{np.median(served.confidence(noise)):.2f} for noise")
