"""The printed recipes: settings by system and dataset, for `entourage train --preset` and `train_settings`.

Each line says where it is from: AC is Attend to Context (with its supplement, ACs), IB Intra-Batch Connections, DC the
supplement of Divide and Conquer, CI that of Cross-Image Attention. What a paper leaves open is taken from the code that
its authors, or those of a baseline they use, have published; docs/training.md lists what is printed and what is not.

All of them train on all training classes and keep the last epoch, as the papers do not hold classes out. The encoder is
torchvision's ResNet-50 (IMAGENET1K_V1), which PyTorch gave when the papers were written; `encoder` may be a local file
of it, resnet50-0676ba61.pth.
"""

from typing import Any

__all__ = ["BASELINE", "CROSS_IMAGE", "DIVIDE", "INTRA_BATCH", "STUDENT"]

Preset = dict[str, Any]

RESNET_50 = "timm/resnet50.tv_in1k"
ALL_CLASSES: Preset = {"validation_share": 0.0}


def _cropped(resize: int | list[int], crop: int, **more: Any) -> Preset:
    """A resize, to a square or of the shorter side, and a centre crop; random crops and flips in training."""
    return {"preprocessing": {"resize": resize, "crop": crop, "resample": "bilinear", **more}}


# ---- baseline: AC Table 3 (MS-Loss, Margin and ProxyAnchor, R50, 512) --------------------------------------------

_OF_AC: Preset = {
    **ALL_CLASSES,
    "encoder": RESNET_50,  # AC 4.2, Table 3: ResNet-50
    "dim": 512,  # ACs A; AC Table 3
}

# MS-Loss: Wang et al. 2019, configs/example_resnet50.yaml of their code: Adam 3e-5, decay 5e-4, 80 = 16 x 5 items,
# 3,000 steps with a tenth of the rate after 1,200 and 2,400, which are 41, 16 and 33 epochs of CUB; batch norm keeps
# its statistics; crops of 16 to 100 % of the area; mining with a margin of 0.1. They print no other set: Cars and SOP
# here have the epochs of CUB.
_MS: Preset = {
    **_OF_AC,
    **_cropped([256, 256], 224, min_area=0.16),  # ACs A: resized to 256 x 256, central crop 224 x 224
    "loss": "ms",
    "loss_options": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1},  # ACs B: alpha, beta, lambda
    "freeze_batch_norm": "statistics",
    "encoder_options": {"pooling": "average"},
    "batch_classes": 16,
    "batch_per_class": 5,
    "learning_rate": 3e-5,
    "weight_decay": 5e-4,
    "epochs": 41,
    "scheduler": "step",
    "step_after": [16, 33],
}

# Margin: Wu et al. 2017; margin 0.2, boundary 1.2 (DC 2 uses the same loss). The rest as configs/example_margin.yaml of
# the code of MS-Loss, with 120 = 24 x 5 items.
_MARGIN: Preset = {
    **_MS,
    "loss": "margin",
    "loss_options": {"margin": 0.2, "beta": 1.2},
    "batch_classes": 24,
}


# Proxy-Anchor: Kim et al. 2020, the commands of their README for ResNet-50: AdamW 1e-4 (proxies 1e-2), decay 1e-4, 120
# items, 60 epochs, the rate halved every 5 (CUB) or 10 (Cars) epochs, the first 5 train the head alone, batch norm
# frozen, average and maximum pooled. They draw batches at random; ours are 30 classes x 4.
def _proxy_anchor(every: int, **changed: Any) -> Preset:
    return {
        **_OF_AC,
        **_cropped([256, 256], 224),  # ACs A
        "loss": "proxy-anchor",
        "loss_options": {"margin": 0.1, "alpha": 32.0},
        "freeze_batch_norm": "all",
        "encoder_options": {"pooling": "average+max"},
        "batch_classes": 30,
        "batch_per_class": 4,
        "optimizer": "adamw",
        "learning_rate": 1e-4,
        "loss_learning_rate": 1e-2,
        "weight_decay": 1e-4,
        "head_epochs": 5,
        "epochs": 60,
        "scheduler": "step",
        "step_after": list(range(every, 60, every)),
        "step_factor": 0.5,
        **changed,
    }


# Of SOP they print the command for BN-Inception alone: 180 items, 6e-4, a quarter of the rate every 20 epochs, one
# epoch of the head alone, batch norm learned.
_SOP_PROXIES: Preset = {
    "freeze_batch_norm": "none",
    "batch_classes": 45,
    "learning_rate": 6e-4,
    "loss_learning_rate": 6e-2,
    "head_epochs": 1,
    "step_factor": 0.25,
}

BASELINE: dict[str, Preset] = {
    **{f"{name}-ms": _MS for name in ("cars", "cub", "sop")},
    **{f"{name}-margin": _MARGIN for name in ("cars", "cub", "sop")},
    "cars-proxy-anchor": _proxy_anchor(10),
    "cub-proxy-anchor": _proxy_anchor(5),
    "sop-proxy-anchor": _proxy_anchor(20, **_SOP_PROXIES),
}


# ---- intra-batch: IB Tables 1 and 2; "-large": IB Table 6 --------------------------------------------------------


def _intra_batch(
    batch: tuple[int, int], steps: int, heads: int, rate: float, decay: float, temperature: float
) -> Preset:
    return {
        **ALL_CLASSES,
        **_cropped([256, 256], 227),  # IB 4.1: resized to 256 x 256, centre crop 227 x 227; crops of 8 to 100 %
        "encoder": RESNET_50,  # IB 4.1
        "encoder_options": {"pooling": "max"},  # their code
        "dim": 512,  # IB 4.1
        "epochs": 70,  # IB 4.1, with Adam
        "scheduler": "step",  # their code: a tenth after 30 and 50
        "step_after": [30, 50],
        "batch_classes": batch[0],  # these and all below: found by random search (IB 4.1), as their code has them
        "batch_per_class": batch[1],
        "steps": steps,  # IB 4.4 and Figs 4, 5, 17: 1 and 2 heads on CUB, 2 and 8 on Cars
        "heads": heads,
        "learning_rate": rate,
        "weight_decay": decay,
        "temperature": temperature,
    }


_OF_IB: dict[str, Preset] = {
    "cars": _intra_batch((10, 7), steps=2, heads=8, rate=3.67e-4, decay=2.6e-9, temperature=0.111),
    "cub": _intra_batch((6, 9), steps=1, heads=2, rate=1.56e-4, decay=6.1e-6, temperature=0.2),
    "in_shop": _intra_batch((14, 4), steps=1, heads=4, rate=1.13e-4, decay=1.1e-7, temperature=0.186),
    "sop": _intra_batch((15, 6), steps=1, heads=8, rate=2.47e-4, decay=2.8e-13, temperature=0.605),
}
_LARGE = _cropped([288, 288], 256)  # IB B: resized to 288 x 288, cropped to 256 x 256
INTRA_BATCH = {**_OF_IB, **{f"{name}-large": {**preset, **_LARGE} for name, preset in _OF_IB.items()}}

# ---- student: IB C.4, last three rows of Table 7 (CUB and Cars) --------------------------------------------------

# The encoder, the batches and the steps of the teacher's own training; `teacher`, a run of intra-batch, is to be given.
_NETWORK_ALONE = ("steps", "heads", "temperature")
STUDENT: dict[str, Preset] = {
    name: {key: value for key, value in _OF_IB[name].items() if key not in _NETWORK_ALONE} for name in ("cars", "cub")
}

# ---- divide: DC Table S1 (SOP), Table S2 (Market-1501) -----------------------------------------------------------

_DIVIDE: Preset = {
    **ALL_CLASSES,
    **_cropped(256, 224),  # their code: the shorter side, as torchvision resizes
    "encoder": RESNET_50,  # DC Table S2
    "encoder_options": {"pooling": "average"},  # their code
    "freeze_batch_norm": "statistics",  # their code: scale and shift still learn
    "dim": 128,  # DC 2, Table S2
    "learners": 8,  # DC 2
    "loss": "margin",  # DC 2
    "loss_options": {"margin": 0.2, "beta": 1.2},  # their code; the boundary is not learned there
    "batch_classes": 20,  # these and all below: the command of their README
    "batch_per_class": 4,
    "learning_rate": 1e-5,
    "weight_decay": 1e-4,
    "epochs": 200,
    "slice_share": 0.4,
    "conquer_share": 0.05,
    "recluster_every": 2,
    "cluster_starts": 5,
    "cluster_iterations": 100,
}
# Persons stand upright in pictures of 128 x 64: nothing is cut off them, neither in the test nor in training.
_UPRIGHT: Preset = {
    "preprocessing": {"resize": [256, 128], "crop": "none", "random_crop": False, "resample": "bilinear"}
}

DIVIDE: dict[str, Preset] = {
    "in_shop": _DIVIDE,  # their README
    "market1501": {**_DIVIDE, **_UPRIGHT},
    "sop": _DIVIDE,
}

# The baselines of DC Tables S1 and S2: the same without dividing.
_DIVIDING = ("learners", "slice_share", "conquer_share", "recluster_every", "cluster_starts", "cluster_iterations")
BASELINE |= {
    f"{name}-margin-128": {key: value for key, value in DIVIDE[name].items() if key not in _DIVIDING}
    for name in ("market1501", "sop")
}

# ---- cross-image: CI Figs S1 to S5 (CUB, Cars and a third set) ---------------------------------------------------

# The supplement prints no setting but that blocks 2, 4 and 6 are shown. The rest is that of the MS baseline; all pairs
# count, as nothing is said of mining.
CROSS_IMAGE: dict[str, Preset] = {
    name: {
        **_MS,
        "loss_options": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5},
        "blocks": 6,  # CI 2
    }
    for name in ("cars", "cub", "sop")
}
