"""The baseline: an encoder trained by a metric loss over class-balanced batches."""
