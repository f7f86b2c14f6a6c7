# %% [markdown]
# # Images: from a folder of pictures to better retrieval
#
# Pictures in a folder for each class train a small encoder from scratch on half of the classes; the others become
# vectors and are refined. `pip install 'entourage[train]'`; with `entourage[images]` the encoder may be any vision model
# of Hugging Face instead.

# %%
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from entourage.data.sets import glyphs

EPOCHS = os.environ.get("EPOCHS", "10")
os.chdir(tempfile.mkdtemp())

# %% [markdown]
# **Pictures.** Characters of several scripts, drawn with the fonts at hand, stand in for your photographs.

# %%
drawn = glyphs.load(split="train", scripts=4) if False else None
