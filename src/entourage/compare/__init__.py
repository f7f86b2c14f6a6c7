"""The bake-off: every method on classes none of them has seen, each with settings chosen on the training classes.

split_half, split_as_told   which classes are learned from, which are judged
choose_settings             the settings of a method, from training classes held out
compare                     fit, apply and score every method: a Comparison
paired_bootstrap(s), harm   how sure a difference is, and whom it hurts
"""

from entourage.compare.bakeoff import Comparison, Row, compare
from entourage.compare.contenders import CONTENDERS, Contender, select
from entourage.compare.differences import Interval, harm, paired_bootstrap, paired_bootstraps
from entourage.compare.splits import split_as_told, split_half
from entourage.compare.tuning import Choice, Trial, choose_settings

__all__ = [
    "CONTENDERS",
    "Choice",
    "Comparison",
    "Contender",
    "Interval",
    "Row",
    "Trial",
    "choose_settings",
    "compare",
    "harm",
    "paired_bootstrap",
    "paired_bootstraps",
    "select",
    "split_as_told",
    "split_half",
]
