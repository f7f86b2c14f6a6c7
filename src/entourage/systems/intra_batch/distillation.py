"""What a student may imitate of its teacher (supplement C.4), each a loss over a batch; teachers get no gradient.

b items of a batch, d dimensions, C classes.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["class_probability_loss", "feature_loss", "relation_loss"]


def class_probability_loss(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """T^2 KL(softmax(teacher / T) || softmax(student / T)), the mean over items (Hinton et al. 2015).

    Parameters
    ----------
    student, teacher : Tensor, shape (b, C)
        Logits.
    temperature : float
        T, which divides the logits.

    Returns
    -------
    Tensor, shape ()
        The loss.
    """
    learned, wanted = (F.log_softmax(logits / temperature, dim=1) for logits in (student, teacher))
    return temperature**2 * F.kl_div(learned, wanted, reduction="batchmean", log_target=True)


def feature_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """The Huber loss between unit vectors scaled by sqrt(d), the mean over their coordinates.

    A LayerNorm gives coordinates of size 1, at which the loss is meant to turn from square to straight.

    Parameters
    ----------
    student, teacher : Tensor, shape (b, d)
        Vectors of any length.

    Returns
    -------
    Tensor, shape ()
        The loss.
    """
    scale = math.sqrt(student.shape[1])
    return F.huber_loss(scale * F.normalize(student, dim=1), scale * F.normalize(teacher, dim=1))


def relation_loss(student: Tensor, teacher: Tensor, angle_weight: float = 2.0) -> Tensor:
    """How much distances between items, and angles at each of them, differ from the teacher's (Park et al. 2019):

    Huber(|t_i - t_j| / mean) over pairs + angle_weight Huber(cos of the angle i j k) over triples

    Parameters
    ----------
    student : Tensor, shape (b, d)
        Vectors of any length.
    teacher : Tensor, shape (b, d')
        Vectors of any length, which may have other dimensions.
    angle_weight : float
        Weight of the angles.

    Returns
    -------
    Tensor, shape ()
        The loss.
    """
    relations = [(_distances(x), _angles(x)) for x in (F.normalize(student, dim=1), F.normalize(teacher, dim=1))]
    (distances, angles), (taught_distances, taught_angles) = relations
    return F.huber_loss(distances, taught_distances) + angle_weight * F.huber_loss(angles, taught_angles)


def _distances(x: Tensor) -> Tensor:
    """(b (b - 1) / 2,) of the pairs, divided by their mean."""
    i, j = torch.triu_indices(len(x), len(x), offset=1, device=x.device)
    distances = _lengths(x[i] - x[j])
    return distances / distances.mean()


def _angles(x: Tensor) -> Tensor:
    """(b, b, b): the cosine of the angle at j between i and k, at [j, i, k]; 0 where two of them are one."""
    towards = x[None] - x[:, None]  # [j, i]: from j to i
    towards = towards / _lengths(towards)[..., None]
    return towards @ towards.transpose(1, 2)


def _lengths(x: Tensor) -> Tensor:
    """Of vectors (..., d), never 0: a square root has no gradient there."""
    return (x.square().sum(dim=-1) + 1e-12).sqrt()
