"""Intra-batch connections: an encoder trained with a network that passes messages within the batch."""
