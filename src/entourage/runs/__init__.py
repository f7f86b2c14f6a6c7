"""Run folders: what a training or a refinement writes to disk, opened again and drawn."""
