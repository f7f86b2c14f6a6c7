"""A fingerprint of what a run depends on, by which a checkpoint of another run is recognised."""

import hashlib
import json
from collections.abc import Iterable, Mapping

import numpy as np
from torch import nn

from entourage.data.image_set import Items, column_of
from entourage.runtime.config import to_dict
from entourage.stores import add_weights
from entourage.systems.settings import NOT_DECISIVE, EncoderSettings

__all__ = ["training_fingerprint"]


def training_fingerprint(
    settings: EncoderSettings, images: Items, parts: Mapping[str, nn.Module], weights: Iterable[nn.Module]
) -> str:
    """Name data, settings and the weights a training starts from, as far as they decide the result.

    Parameters
    ----------
    settings : EncoderSettings
        The settings of the system.
    images : ImageSet or Embeddings
        What it trains on.
    parts : mapping of str to torch.nn.Module
        What is trained besides the encoder; its weights do not count, since a loss object of the user's may start from
        others every time.
    weights : iterable of torch.nn.Module
        Modules whose weights count: the encoder, and a teacher, may change while the path that the settings name stays.

    Returns
    -------
    str
        A SHA-256, in hexadecimal.
    """
    decisive = {name: value for name, value in to_dict(settings).items() if name not in NOT_DECISIVE}
    digest = hashlib.sha256(f"{json.dumps(decisive, sort_keys=True)}{parts!r}".encode())
    for name in ("labels", "ids", "boxes", "pixels", "vectors"):
        column = column_of(images, name)
        if column is not None:
            digest.update(np.ascontiguousarray(column).tobytes())
    for module in weights:
        add_weights(digest, module)
    return digest.hexdigest()
