# %% [markdown]
# # Five minutes: will it help, and how much?
#
# Scikit-learn's handwritten digits, 1,797 pictures of 8 × 8 pixels, stand in for the vectors of your encoder. Nothing
# below is told which digit a picture shows; the labels only judge the result. The core installation is enough.
#
# The digits are among what the universal scorer was made from, so that these figures flatter it:
# [what it gains](../compare.md#what-it-gains) is measured on data that it does not know.

# %%
from sklearn.datasets import load_digits

from entourage import ContextRefiner, doctor, evaluate

X, y = load_digits(return_X_y=True)  # (1797, 64) vectors; which digit each of them is

# %% [markdown]
# **Ask first.** The doctor looks at the neighbourhoods and says whether refinement is likely to help.

# %%
print(doctor(X).verdict)

# %% [markdown]
# **Refine.** Every vector moves towards those neighbours that the universal scorer takes for its own kind.
# What comes back has the same shape and goes into the same index.

# %%
refined = ContextRefiner().fit_transform(X)
print(X.shape, "->", refined.shape)

# %% [markdown]
# **Judge.** Each item is a query among all others. R@1: how often the nearest item is of the query's class. MAP@R: how
# far up its whole class comes.

# %%
before, after = evaluate(X, y).metrics, evaluate(refined, y).metrics
for name, key in (("R@1", "recall@1"), ("MAP@R", "map@r")):
    print(f"{name}: {100 * before[key]:.1f} -> {100 * after[key]:.1f}")

# %% [markdown]
# The same from the command line, with vectors in a file:
#
#     entourage doctor vectors.npy
#     entourage refine vectors.npy --out refined.npy
#     entourage evaluate refined.npy --labels labels.npy
