"""How an encoder is trained by a metric loss."""

from dataclasses import dataclass

from entourage.systems.settings import MetricLossSettings

__all__ = ["BaselineSettings"]


@dataclass(frozen=True)
class BaselineSettings(MetricLossSettings):
    """An encoder and a metric loss, and nothing else."""
