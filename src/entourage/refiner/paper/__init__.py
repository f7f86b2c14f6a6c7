"""Attend to Context as it was published: cross-attention blocks over the initial embeddings of the neighbours."""
