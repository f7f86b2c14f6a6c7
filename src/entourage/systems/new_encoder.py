"""The encoder a training begins with: a new one by name and settings, or a saved one as it is."""

from typing import Any

from entourage.data.image_set import Items, column_of
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import SlicedEncoder, build_encoder
from entourage.encoders.protocol import Encoder
from entourage.encoders.saving import saved_encoder
from entourage.encoders.vectors import check_takes
from entourage.errors import InputError
from entourage.systems.settings import EncoderSettings
from entourage.values import Embeddings

__all__ = ["new_encoder"]


def new_encoder(settings: EncoderSettings, items: Items) -> Any:
    """Build, or load, the encoder that the settings name.

    Parameters
    ----------
    settings : EncoderSettings
        Its name, its options and its dimensions.
    items : ImageSet or Embeddings
        What it will be trained on, and must take.

    Returns
    -------
    Encoder
        A torch module.

    Raises
    ------
    InputError
        If it does not take such items, or if it is a saved one of another size than the settings ask for.
    """
    if saved_encoder(settings.encoder):
        encoder = build_encoder(settings.encoder, **settings.encoder_options)
        _check_unchanged(encoder, settings)
    else:
        encoder = build_encoder(settings.encoder, **_options(settings, items))
    check_takes(encoder, items)
    if settings.preprocessing:
        _prepare(encoder, settings.preprocessing, settings.image_size)
    return encoder


def _prepare(encoder: Any, changed: dict[str, Any], size: int | None) -> None:
    """Change some fields of an encoder's preprocessing, in place; at another size they keep their proportion."""
    encoder = encoder.encoder if isinstance(encoder, SlicedEncoder) else encoder
    own = encoder.preprocessing
    if own is None:
        raise InputError(
            f"preprocessing is {changed} but the encoder takes vectors, which are taken as they are; leave it out"
        )
    values = {name: None if value == "none" else value for name, value in changed.items()}
    prepared = Preprocessing.from_dict(own.to_dict() | values)
    prepared.check_channels(own.channels)
    encoder.preprocessing = prepared if size is None else prepared.at_size(size)


def _check_unchanged(encoder: Encoder, settings: EncoderSettings) -> None:
    """A saved encoder is taken as it is: another size that was asked for is not passed over in silence."""
    if settings.dim not in (encoder.dim, EncoderSettings.dim):  # the default is what nobody asked for
        raise InputError(
            f"dim is {settings.dim} but {settings.encoder} is an encoder of {encoder.dim} dimensions; "
            f"set dim = {encoder.dim}, or begin with another encoder"
        )
    own, size = encoder.preprocessing, settings.image_size
    if size is not None and own is not None and own.at_size(size) != own:
        raise InputError(
            f"image_size is {size} but {settings.encoder} is an encoder with a size of its own, "
            f"{own.crop or own.resize or 'that of each picture'}; leave image_size out, or begin with another encoder"
        )


def _options(settings: EncoderSettings, items: Items) -> dict[str, Any]:
    """What the encoder is built with."""
    options = {"dim": settings.dim, **settings.encoder_options}
    if settings.encoder in ("linear", "mlp") and isinstance(items, Embeddings):
        options["in_dim"] = items.dim
    if settings.image_size is not None:
        options["size"] = settings.image_size
    elif settings.encoder == "small" and column_of(items, "pixels") is not None:
        options["size"] = None  # pictures in memory keep theirs
    return options
