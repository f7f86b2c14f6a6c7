"""How networks learn: the one fit loop with checkpoints and logs, sampling of batches, losses, linear maps."""
