"""Divide and conquer: an encoder whose embedding is shared by learners, each trained on a cluster of the data."""
