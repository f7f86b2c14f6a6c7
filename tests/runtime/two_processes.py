"""What each process does for test_distributed.py: torchrun starts this file twice, or it runs alone.

python two_processes.py FOLDER    # results in FOLDER/rank0.json, rank0.safetensors, ...
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from entourage.data.arrays import ImageArray
from entourage.data.preprocessing import Preprocessing
from entourage.encoders import HuggingFaceEncoder, save_encoder
from entourage.runtime import distributed
from entourage.runtime.randomness import seeded_weights
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.cross_image.settings import CrossImageSettings
from entourage.systems.cross_image.training import train_cross_image
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.divide_and_conquer.training import train_divided
from entourage.systems.intra_batch.settings import IntraBatchSettings, StudentSettings
from entourage.systems.intra_batch.student import train_student
from entourage.systems.intra_batch.training import fit_intra_batch
from entourage.training.log import RunLog
from entourage.training.loop import fit_model
from entourage.training.losses import build_loss
from entourage.training.sampling import class_balanced_batches, share_of_rank
from entourage.training.settings import Checkpointing, FitSettings, Reporting
from entourage.values import Embeddings

LOSSES = ("ms", "margin", "proxy-anchor")
LABELS = np.repeat(np.arange(6), 5)
VECTORS = torch.randn(30, 7, generator=torch.Generator().manual_seed(0))
OF_VECTORS = {"encoder": "linear", "dim": 4, "batch_classes": 3, "batch_per_class": 3, "validation_share": 0.0}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.start()
    found = {
        "place": [distributed.rank(), distributed.world_size(), distributed.is_main()],
        "from_main": distributed.from_main(0.25 + distributed.rank()),
        **gather(),
        "reporting": [],
    }
    tensors = {}
    for name in LOSSES:
        model = fit(name, folder, report=lambda *_: found["reporting"].append(distributed.rank()))
        tensors |= {f"{name}.{key}": value for key, value in model.state_dict().items()}
    encoder, history, _ = baseline(folder)
    tensors |= {f"baseline.{key}": value.contiguous() for key, value in encoder.state_dict().items()}
    found["curve"] = history.curve
    tensors |= {f"divided.{key}": value.contiguous() for key, value in divided().state_dict().items()}
    encoder, network = intra_batch(folder)
    tensors |= {f"intra_batch.{key}": value.contiguous() for key, value in encoder.state_dict().items()}
    tensors |= {f"messages.{key}": value.contiguous() for key, value in network.state_dict().items()}
    tensors |= {f"student.{key}": value.contiguous() for key, value in student(folder).state_dict().items()}
    encoder, history, _ = cross_image(folder)
    tensors |= {f"cross_image.{key}": value.contiguous() for key, value in encoder.state_dict().items()}
    found["cross_image_curve"] = history.curve
    transformer(folder)
    save_file(tensors, folder / f"rank{distributed.rank()}.safetensors")
    (folder / f"rank{distributed.rank()}.json").write_text(json.dumps(found))
    distributed.stop()


def share(rows: np.ndarray) -> np.ndarray:
    return share_of_rank(rows, distributed.rank(), distributed.world_size())


def gather() -> dict:
    """Three rows times one weight, in shares of 2 and 1: the gradient of the weight is that of the whole."""
    weight = nn.Parameter(torch.ones(()))
    rows = torch.arange(6.0).reshape(3, 2)[share(np.arange(3))]
    whole = distributed.gathered(rows * weight)
    (whole * torch.tensor([[1.0], [10.0], [100.0]])).sum().backward()
    distributed.average_gradients([weight])
    return {"gathered": whole.tolist(), "gradient": weight.grad.item()}


def fit(name: str, folder: Path, report) -> nn.Module:
    """A net without batch norm on batches of 3 x 3, in shares of 5 and 4; some weights never get a gradient.

    Every process starts from weights of its own: those of the first must win.
    """
    model = seeded_weights(
        distributed.rank(),
        lambda: nn.ModuleDict({"net": nn.Linear(7, 5), "unused": nn.Linear(2, 2), "loss": build_loss(name, 6, 5)}),
    )

    def loss(rows):
        embeddings = F.normalize(model["net"](VECTORS[rows]))
        return model["loss"](distributed.gathered(embeddings), distributed.gathered(torch.from_numpy(LABELS[rows])))

    fit_model(
        model,
        torch.optim.Adam(model.parameters(), 1e-2, weight_decay=1e-2),
        FitSettings(epochs=5, clip=1.0),
        batches=lambda epoch: [share(batch) for batch in class_balanced_batches(LABELS, 3, 3, seed=0, epoch=epoch)],
        loss=loss,
        checkpointing=Checkpointing(folder / f"{name}.checkpoint"),
        reporting=Reporting(RunLog(folder / f"{name}.jsonl"), progress=report),
    )
    return model


def baseline(folder: Path):
    """The whole system, batch norm and all."""
    pixels = np.random.default_rng(0).integers(0, 255, (48, 8, 8), dtype=np.uint8)
    settings = BaselineSettings(dim=4, encoder_options={"width": 4}, batch_classes=3, batch_per_class=2, epochs=2)
    return train_baseline(ImageArray(pixels, np.arange(48) // 6), settings, run_folder=folder / "baseline")


def divided() -> nn.Module:
    """Learners on slices of vectors, clustered by the first process before every epoch."""
    options = {"encoder": "linear", "dim": 4, "validation_share": 0.0, "learning_rate": 0.01}
    sizes = {"learners": 2, "recluster_every": 1, "batch_classes": 2, "batch_per_class": 2, "epochs": 4}
    items = Embeddings.from_vectors(VECTORS.numpy(), labels=LABELS)
    return train_divided(items, DivideSettings(**options, **sizes))[0]


def intra_batch(folder: Path) -> tuple[nn.Module, nn.Module]:
    """Encoder and network, whose dropout must leave out the same in every process; kept as a run for the student."""
    run = folder / "intra_batch"
    items = Embeddings.from_vectors(VECTORS.numpy(), labels=LABELS)
    settings = IntraBatchSettings(**OF_VECTORS, epochs=3, dropout=0.3)
    (encoder, *_), trained = fit_intra_batch(items, settings, run_folder=run)
    if distributed.is_main():
        save_encoder(run / "encoder", encoder)
    distributed.from_main(0.0)  # the others wait for it
    return encoder, trained.network


def student(folder: Path) -> nn.Module:
    items = Embeddings.from_vectors(VECTORS.numpy(), labels=LABELS)
    lesson = {"teacher": str(folder / "intra_batch"), "distillation": "relations"}
    return train_student(items, StudentSettings(**OF_VECTORS, **lesson, epochs=3))[0]


def cross_image(folder: Path):
    """A system whose loss looks at feature maps of the whole batch."""
    pixels = np.random.default_rng(0).integers(0, 255, (48, 8, 8), dtype=np.uint8)
    options = {"dim": 4, "blocks": 2, "encoder_options": {"width": 4, "last_stride": 1}}
    settings = CrossImageSettings(batch_classes=3, batch_per_class=2, epochs=2, **options)
    return train_cross_image(ImageArray(pixels, np.arange(48) // 6), settings, run_folder=folder / "cross_image")


def transformer(folder: Path) -> None:
    """The same of an encoder without batch norm, which learns on two processes what it learns on one."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = {"model_type": "vit", "image_size": 24, "patch_size": 4, **sizes}
    options = {"dim": 4, "pooling": "average", "preprocessing": Preprocessing().at_size(24)}
    place = folder / f"vit_of_rank{distributed.rank()}"
    save_encoder(place, seeded_weights(0, lambda: HuggingFaceEncoder.from_config(config, **options)))
    pixels = np.random.default_rng(0).integers(0, 255, (48, 24, 24), dtype=np.uint8)
    sizes = {"batch_classes": 3, "batch_per_class": 3, "epochs": 2, "blocks": 2, "probe_batches": 2}
    settings = CrossImageSettings(encoder=str(place), **sizes)
    train_cross_image(ImageArray(pixels, np.arange(48) // 6), settings, run_folder=folder / "transformer")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
