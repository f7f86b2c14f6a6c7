"""The one fit loop of every system, and what it is made of.

loop.py steps, evaluates, keeps the best and stops early; checkpoint.py makes an interrupted run end as an
uninterrupted one; log.py writes a line per epoch; schedule.py moves the learning rates; pace.py reports progress.
"""

from entourage.training.history import History
from entourage.training.log import RunLog
from entourage.training.loop import fit_model, seeded
from entourage.training.schedule import cosine_schedule, step_schedule

__all__ = ["History", "RunLog", "cosine_schedule", "fit_model", "seeded", "step_schedule"]
