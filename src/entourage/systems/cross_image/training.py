"""How encoder and blocks are trained together.

    e_i, E_i = encoder(I_i)                            embeddings (b, d) and feature maps (b, c, h, w), in one pass
    loss = (1 - w) L(e_i . e_j) + w L(s(i, j))         L a loss of similarities, s the conditional ones (blocks.py)

With w = 0 it is the baseline. The epoch that is kept is chosen by the unconditional embeddings of held-out classes.
"""

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from entourage.data.batches import PictureBatch
from entourage.data.image_set import Items
from entourage.errors import EntourageWarning, InputError
from entourage.runtime import distributed
from entourage.runtime.progress import shows_progress
from entourage.runtime.randomness import seeded_weights
from entourage.stores.filenames import CROSS_IMAGE, GRADIENTS
from entourage.systems.cross_image.blocks import CrossImageBlocks, save_blocks
from entourage.systems.cross_image.encoding import check_has_map
from entourage.systems.cross_image.probe import GradientProbe
from entourage.systems.cross_image.settings import CrossImageSettings
from entourage.systems.encoder_training import EncoderTraining
from entourage.systems.parts import NotedBatches
from entourage.systems.refitting import fit_and_refit
from entourage.systems.trained import RunOptions, TrainedEncoder
from entourage.training.losses import build_loss

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["hardest_pairs", "train_cross_image"]

_FEW_PLACES = 36


@shows_progress
def train_cross_image(
    images: Items, settings: CrossImageSettings, *, probe: GradientProbe | None = None, **run: "Unpack[RunOptions]"
) -> TrainedEncoder:
    """Train an encoder by embeddings conditional on the image they are compared with.

    Parameters
    ----------
    images : ImageSet
        Labelled pictures.
    settings : CrossImageSettings
        The encoder, the blocks, and how both are trained.
    probe : GradientProbe, optional
        One to count gradients with, instead of one that writes to the run folder.
    **run
        run_folder, resume, strict and progress; see `trained.RunOptions`. The blocks are left in
        run_folder / "cross_image".

    Returns
    -------
    TrainedEncoder
        The encoder with the weights of its best epoch, the history, and the pictures left out.
    """

    def train(training: EncoderTraining) -> TrainedEncoder:
        objective = _objective(training, probe)
        trained = training.fit(
            {"blocks": objective.blocks, "loss": objective.criterion},
            objective.loss,
            optimizer=training.optimizer(_block_group(objective.blocks, settings)),
            batches=objective.batches,
        )
        if training.folder and distributed.is_main():
            _keep(training.folder, objective.blocks)
        return trained

    return fit_and_refit(train, images, settings, **run)


def hardest_pairs(similarity: Tensor, codes: Tensor, negatives: int | None) -> Tensor | None:
    """Choose the pairs to condition: all of a class, and with each image its hardest negatives.

    Parameters
    ----------
    similarity : Tensor, shape (b, b)
        Unconditional.
    codes : Tensor of int, shape (b,)
        The classes.
    negatives : int or None
        How many of other classes each image chooses, the most similar ones; None for all.

    Returns
    -------
    Tensor of bool, shape (b, b), or None
        Symmetric: a pair counts if either of its images chose it, as the conditional similarity needs both. None stands
        for all pairs.
    """
    same = codes[:, None] == codes[None, :]
    if negatives is None or negatives >= int((~same).sum(dim=1).max()):
        return None
    chosen = similarity.detach().masked_fill(same, -torch.inf).topk(negatives, dim=1).indices
    hard = torch.zeros_like(same).scatter_(1, chosen, True)
    return same | hard | hard.T


class _Objective:
    """The loss of a batch, and what it is made of."""

    def __init__(
        self, training: EncoderTraining, blocks: CrossImageBlocks, criterion: Any, probe: GradientProbe
    ) -> None:
        self.training, self.blocks, self.criterion, self.probe = training, blocks, criterion, probe

    def batches(self, epoch: int) -> NotedBatches:
        """The batches of an epoch, of which the first ones are counted by the probe."""
        self.probe.begin(epoch)
        return self.training.batches(epoch)

    def loss(self, batch: PictureBatch) -> Tensor:
        """The loss of a batch, both similarities together."""
        # What the encoder itself gives is watched: of the gathered float32 copies one is not made of the other.
        vectors, maps, source = self.training.forward(self.training.encoder.with_source, batch)
        vectors, maps = (distributed.gathered(values.float()) for values in (vectors, maps))
        codes = distributed.gathered(self.training.codes_of(batch))
        unconditional = self.criterion(vectors, codes)
        loss, weight = unconditional, self.training.settings.conditional_weight
        if weight:
            similarity = self._conditional(vectors, maps, codes)
            loss = (1 - weight) * unconditional + weight * self.criterion.of_similarities(similarity, codes)
        self.probe.watch(source, unconditional)
        return loss

    def _conditional(self, vectors: Tensor, maps: Tensor, codes: Tensor) -> Tensor:
        s = self.training.settings
        needed = hardest_pairs(vectors @ vectors.T, codes, s.negatives)
        context = self.blocks.context(maps)
        return self.blocks(vectors, context, needed, pairs_at_once=s.pairs_at_once, recompute=s.recompute)


def _objective(training: EncoderTraining, probe: GradientProbe | None) -> _Objective:
    check_has_map(training.encoder)
    s, dim = training.settings, training.encoder.dim
    criterion = build_loss(s.loss, training.n_classes, dim, **s.loss_options)
    channels = _channels(training)
    blocks = seeded_weights(s.seed, lambda: CrossImageBlocks(dim, channels, s.blocks)).to(training.device)
    if training.chosen is not None:
        probe = GradientProbe(0)  # what the first training counted stays
    elif probe is None:
        file = training.folder / GRADIENTS if training.folder and distributed.is_main() else None
        probe = GradientProbe(s.probe_batches, file)
    return _Objective(training, blocks, criterion, probe)


@torch.no_grad()
def _channels(training: EncoderTraining) -> int:
    """How many channels the feature map of a picture has; a map of few places gets a warning."""
    some = training.example()
    if some is None:
        raise InputError("none of the pictures to train with can be decoded; check the files")
    training.encoder.eval()  # the statistics of a batch norm stay as they are
    channels, h, w = training.forward(training.encoder.feature_map, some).shape[1:]
    if h * w < _FEW_PLACES:
        warnings.warn(
            f"the encoder's feature map has {h} x {w} places, few to choose among; use larger pictures (image_size) "
            "or, for the small encoder, encoder_options.last_stride = 1",
            EntourageWarning,
            stacklevel=2,
        )
    return channels


def _block_group(blocks: nn.Module, settings: CrossImageSettings) -> dict[str, Any]:
    """The blocks as a group of the optimizer."""
    rate = settings.block_learning_rate
    return {"params": list(blocks.parameters()), "lr": settings.learning_rate if rate is None else rate}


def _keep(folder: Path, blocks: CrossImageBlocks) -> None:
    """Write the blocks, and what the probe counted, where the run will keep them."""
    save_blocks(folder / CROSS_IMAGE, blocks, overwrite=True)
    if (folder / GRADIENTS).exists():
        shutil.copyfile(folder / GRADIENTS, folder / CROSS_IMAGE / GRADIENTS)
