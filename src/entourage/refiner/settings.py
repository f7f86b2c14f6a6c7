"""Settings of the relational recipe."""

from dataclasses import dataclass

__all__ = ["RefinerSettings"]


@dataclass(frozen=True)
class RefinerSettings:
    """Settings of the relational recipe, as the estimator hands them on, already checked."""

    n_neighbors: int | None = None
    """k, how many neighbours each item attends to; None leaves the choice to the recipe."""
    n_steps: int = 5
    """T, how many steps of refinement follow one another."""
    random_state: int = 0
    """Seed of everything that is drawn at random."""
