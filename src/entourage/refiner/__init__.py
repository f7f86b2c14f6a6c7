"""The heart: embeddings refined by their neighbours, from a scorer of relations, with labels or without."""
