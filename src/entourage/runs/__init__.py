"""A run folder: what a training or a refinement leaves on disk, written, opened again and drawn."""
