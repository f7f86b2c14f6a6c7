"""Training by conditional embeddings: what is learned, what it equals, what is kept, and the gradients on the way."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.systems.stripes import stripes

from entourage.data.preprocessing import Preprocessing
from entourage.encoders import (
    HuggingFaceEncoder,
    SlicedEncoder,
    SmallResNet,
    VectorEncoder,
    load_encoder,
    save_encoder,
)
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.runs.train import TrainRequest, train_run
from entourage.runtime.randomness import seeded_weights
from entourage.stores.filenames import CHECKPOINT, CROSS_IMAGE
from entourage.systems import SYSTEMS
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.systems.cross_image.blocks import load_blocks
from entourage.systems.cross_image.probe import EDGES, GradientProbe, median_magnitude, read_gradients
from entourage.systems.cross_image.settings import CrossImageSettings
from entourage.systems.cross_image.training import _objective, hardest_pairs, train_cross_image
from entourage.systems.encoder_training import encoder_training
from entourage.training.losses import build_loss
from entourage.training.losses.pairwise import multi_similarity_of
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = stripes()
SETTINGS = {
    "dim": 16,
    "encoder_options": {"width": 4, "last_stride": 1},
    "batch_classes": 4,
    "epochs": 3,
    "validation_share": 0.3,
}


def settings(**changed) -> CrossImageSettings:
    return CrossImageSettings(**(SETTINGS | {"blocks": 2} | changed))


def vit(pooling: str) -> HuggingFaceEncoder:
    """A transformer of 8 x 8 patches in miniature, with random weights."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = {"model_type": "vit", "image_size": 32, "patch_size": 4, **sizes}
    pictures = Preprocessing().at_size(32)
    return seeded_weights(
        0, lambda: HuggingFaceEncoder.from_config(config, dim=16, pooling=pooling, preprocessing=pictures)
    )


def state(module) -> list[torch.Tensor]:
    return [value.clone() for value in module.state_dict().values()]


def equal(left, right) -> bool:
    return len(left) == len(right) and all(map(torch.equal, left, right))


def map_at_r(encoder) -> float:
    vectors = encoder.eval()(torch.from_numpy(IMAGES.pixels / np.float32(255))).detach().numpy()
    return mean_average_precision_at_r(Embeddings.from_vectors(vectors, labels=IMAGES.labels))


def test_the_classes_it_learns_from_come_apart():
    chosen = settings(epochs=10, blocks=1, learning_rate=3e-3, validation_share=0.0)
    untrained, _, _ = train_cross_image(IMAGES, settings(epochs=0))
    encoder, history, _ = train_cross_image(IMAGES, chosen)
    assert map_at_r(encoder) > map_at_r(untrained) + 0.1
    assert history.curve[-1]["loss"] < history.curve[1]["loss"]


def test_without_conditional_similarities_it_is_the_baseline_to_the_bit():
    ours, history, _ = train_cross_image(IMAGES, settings(conditional_weight=0.0))
    theirs, wanted, _ = train_baseline(IMAGES, BaselineSettings(**SETTINGS))
    assert equal(state(ours), state(theirs)) and history == wanted
    with_blocks, _, _ = train_cross_image(IMAGES, settings())
    assert not equal(state(with_blocks), state(theirs))


def test_the_encoder_gives_the_same_vectors_with_the_blocks_removed(tmp_path):
    """What is saved and used at inference is the encoder alone."""
    encoder, _, _ = train_cross_image(IMAGES, settings(epochs=1), run_folder=tmp_path / "run")
    blocks = load_blocks(tmp_path / "run" / CROSS_IMAGE)
    save_encoder(tmp_path / "encoder", encoder)
    alone, pictures = load_encoder(tmp_path / "encoder"), torch.rand(5, 1, 16, 16)
    vectors, maps = encoder.with_map(pictures)
    blocks(vectors, blocks.context(maps))
    assert torch.equal(alone(pictures), vectors) and torch.equal(encoder(pictures), vectors)


def objective_of(images, chosen, probe=None):
    """What a training begins with, blocks that change something included, and its first batch."""
    with encoder_training(images, chosen) as training:
        objective = _objective(training, probe)
    for number, block in enumerate(objective.blocks.blocks):
        seeded_weights(number, lambda weight=block.value.outer.weight: torch.nn.init.normal_(weight, std=1.0))
    training.encoder.train()
    return objective, next(iter(objective.batches(1)))


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_loss_is_the_weighted_mean_of_both_losses(weight):
    """Pair by pair: phi(i|j) . phi(j|i) of blocks that change something, and e_i . e_j."""
    objective, batch = objective_of(IMAGES, settings(conditional_weight=weight))
    vectors, maps = objective.training.encoder.with_map(batch.pictures)
    context, codes = objective.blocks.context(maps), torch.from_numpy(IMAGES.labels[batch.rows])
    given = [objective.blocks.given(vectors[None], place[None])[0] for place in context]  # [j][i] is i given j
    similarity = torch.stack([torch.stack([given[j][i] @ given[i][j] for j in range(16)]) for i in range(16)])
    unconditional = multi_similarity_of(vectors @ vectors.T, codes).item()
    conditional = multi_similarity_of(similarity, codes).item()
    assert abs(unconditional - conditional) > 0.01  # or a weight would mean nothing
    wanted = (1 - weight) * unconditional + weight * conditional
    assert objective.loss(batch).item() == pytest.approx(wanted, rel=1e-5)


def test_all_pairs_or_the_hardest_train_differently_and_both_recompute_alike():
    all_pairs, hard, again = (
        train_cross_image(IMAGES, settings(epochs=1, negatives=negatives, recompute=recompute, pairs_at_once=20))[0]
        for negatives, recompute in ((None, False), (2, False), (2, True))
    )
    assert not equal(state(all_pairs), state(hard))
    for held, computed in zip(state(hard), state(again), strict=True):
        torch.testing.assert_close(held, computed, rtol=1e-3, atol=1e-5)


def test_the_hardest_pairs_are_the_class_and_the_nearest_of_others_from_either_side():
    rng = np.random.default_rng(0)
    similarity, codes = torch.from_numpy(rng.normal(size=(8, 8))), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    chosen = set()
    for q in range(8):
        others = sorted((k for k in range(8) if codes[k] != codes[q]), key=lambda k: -similarity[q, k].item())
        chosen |= {(q, k) for k in others[:2]} | {(k, q) for k in others[:2]}
        chosen |= {(q, k) for k in range(8) if codes[k] == codes[q]}
    found = hardest_pairs(similarity, codes, 2)
    assert {(int(q), int(k)) for q, k in found.nonzero()} == chosen
    assert torch.equal(found, found.T)
    assert hardest_pairs(similarity, codes, None) is None and hardest_pairs(similarity, codes, 6) is None


def test_pairs_left_out_as_least_similar_weigh_nothing_in_the_loss():
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    similarity = torch.full((6, 6), -0.2)
    similarity[0, 2] = similarity[2, 0] = 0.9
    left_out = torch.where(similarity < 0, torch.where(labels[:, None] == labels, similarity, -1.0), similarity)
    loss = build_loss("ms", 3, 4)
    assert loss.of_similarities(left_out, labels).item() == pytest.approx(
        loss.of_similarities(similarity, labels).item()
    )


# ---- what is kept ------------------------------------------------------------------------------------------------


def interrupt_in(epoch):
    def progress(title, done, total):
        if f"(epoch {epoch}/" in title:
            raise KeyboardInterrupt

    return progress


def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been_gradients_too(tmp_path):
    unbroken, wanted, _ = train_cross_image(IMAGES, settings(), run_folder=tmp_path / "unbroken")
    with pytest.raises(KeyboardInterrupt):
        train_cross_image(IMAGES, settings(), run_folder=tmp_path / "run", progress=interrupt_in(2))
    assert (tmp_path / "run" / CHECKPOINT).exists() and not (tmp_path / "run" / CROSS_IMAGE).exists()
    encoder, history, _ = train_cross_image(IMAGES, settings(), run_folder=tmp_path / "run", resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))
    ours, theirs = (load_blocks(tmp_path / name / CROSS_IMAGE) for name in ("run", "unbroken"))
    assert equal(state(ours), state(theirs))
    entries = read_gradients(tmp_path / "run")
    assert [entry["epoch"] for entry in entries] == [1, 2, 3]
    assert entries == read_gradients(tmp_path / "unbroken")


def test_a_run_of_the_command_keeps_encoder_blocks_and_gradients(tmp_path):
    for number, label in enumerate(IMAGES.labels):
        (tmp_path / "pictures" / f"class {label:02}").mkdir(parents=True, exist_ok=True)
        IMAGES.picture(number).save(tmp_path / "pictures" / f"class {label:02}" / f"{number}.png")
    by = settings(epochs=1, refit=False)  # whether there is a second training hangs on the epoch that is best
    run = train_run(TrainRequest(tmp_path / "pictures", tmp_path / "run", system="cross-image", settings=by, nmi=False))
    assert SYSTEMS["cross-image"].keeps == ("cross_image",)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "config.json",
        "cross_image",
        "encoder",
        "log.jsonl",
        "metrics.json",
    ]
    assert run.protocol["system"] == "cross-image" and "recall@1" in run.scores.metrics
    blocks = load_blocks(tmp_path / "run" / "cross_image")
    assert blocks.options == {"dim": 16, "channels": 16, "n_blocks": 2}
    assert len(read_gradients(tmp_path / "run")) == 1


# ---- gradients ---------------------------------------------------------------------------------------------------


def test_the_probe_counts_the_gradients_that_autograd_gives():
    maps = torch.randn(3, 4, 2, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    probe = GradientProbe(1)
    probe.begin(1)
    seen = 1.0 * maps
    unconditional = (seen[:, :, :1] ** 2).sum()  # half of the places have no gradient
    loss = 0.5 * unconditional + 1e-3 * seen.sum()
    probe.watch(seen, unconditional)
    loss.backward()
    probe.watch(seen, unconditional)  # beyond the one batch asked for
    (entry,) = probe.entries
    wanted = {"with_blocks": maps.grad, "without_blocks": torch.cat([2 * maps[:, :, :1], torch.zeros(3, 4, 1, 2)], 2)}
    for name, gradient in wanted.items():
        counts = [0] * (len(EDGES) - 1)
        for value in gradient.detach().flatten().tolist():
            if value:
                log = min(max(np.log10(abs(value)), EDGES[0]), EDGES[-1])
                counts[next(i for i in range(len(counts)) if log <= EDGES[i + 1])] += 1
        assert entry[name] == counts, name
    assert entry["zeros"] == [0, 24] and entry["epoch"] == 1


def test_a_gradient_that_cannot_be_is_refused_and_not_counted_as_zeros():
    maps = torch.randn(2, 3, 2, 2, requires_grad=True)
    probe = GradientProbe(1)
    probe.begin(1)
    with pytest.raises(InputError, match=r"do not depend on the output .*probe_batches = 0"):
        probe.watch(1.0 * maps, (2.0 * maps).sum())


def test_what_is_watched_are_not_the_copies_of_another_precision():
    """As mixed precision makes them: the loss is of float32, whatever the encoder gives."""
    probe = GradientProbe(1)
    objective, batch = objective_of(IMAGES, settings(), probe)
    objective.training.encoder.double()
    objective.loss(replace(batch, pictures=batch.pictures.double())).backward()
    assert sum(probe.entries[0]["with_blocks"]) > 0 and sum(probe.entries[0]["without_blocks"]) > 0


def plain_counts(gradient) -> list[int]:
    logs = np.log10(np.abs(gradient[gradient != 0].double().numpy())).clip(EDGES[0], EDGES[-1])
    return np.histogram(logs, EDGES)[0].tolist()


@pytest.mark.parametrize("pooling", ["average", "cls", "own"])
def test_gradients_of_a_transformer_are_counted_where_embedding_and_map_part(pooling, tmp_path):
    """Of pooled patches that is the map; a class token and a model's own pooling are beside it, among all tokens."""
    save_encoder(tmp_path / "vit", vit(pooling))
    probe = GradientProbe(1)
    objective, batch = objective_of(IMAGES, settings(encoder=str(tmp_path / "vit"), encoder_options={}), probe)
    encoder, seen = objective.training.encoder, []
    encoder.backbone.register_forward_hook(lambda module, given, output: seen.append(output.last_hidden_state))
    loss = objective.loss(batch)
    (tokens,) = seen  # (16, 1 + 64, 16): the class token, then 8 x 8 patches
    tokens.retain_grad()
    loss.backward(retain_graph=True)
    entry = dict(probe.entries[0])  # before the gradient below passes the probe too
    codes = torch.from_numpy(IMAGES.labels[batch.rows])
    pooled = {"average": tokens[:, 1:].mean(dim=1), "cls": tokens[:, 0]}
    pooled["own"] = encoder.backbone.pooler(tokens)
    vectors = torch.nn.functional.normalize(encoder.projection(pooled[pooling]), dim=1)
    unconditional = multi_similarity_of(vectors @ vectors.T, codes)
    wanted = [tokens.grad, torch.autograd.grad(unconditional, tokens)[0]]
    if pooling == "average":
        wanted = [gradient[:, 1:] for gradient in wanted]
    for name, gradient, zeros in zip(("with_blocks", "without_blocks"), wanted, entry["zeros"], strict=True):
        assert gradient.abs().sum() > 0
        assert sum(entry[name]) + zeros == gradient.numel()
        moved = np.abs(np.subtract(entry[name], plain_counts(gradient))).sum()
        assert moved <= 0.01 * gradient.numel()  # by rounding over a border of its bin
    assert sum(entry["without_blocks"]) == (16 * 64 * 16 if pooling == "average" else 16 * 16)


def test_training_records_both_for_every_epoch():
    probe = GradientProbe(2)
    train_cross_image(IMAGES, settings(epochs=2), probe=probe)
    values = 2 * 16 * 16 * 4 * 4  # batches, pictures of each, channels, places
    assert [entry["epoch"] for entry in probe.entries] == [1, 2]
    for entry in probe.entries:
        assert sum(entry["with_blocks"]) + entry["zeros"][0] == values
        assert sum(entry["without_blocks"]) + entry["zeros"][1] == values
    assert probe.entries[1]["with_blocks"] != probe.entries[1]["without_blocks"]


def test_with_weight_0_both_are_the_same_and_without_batches_nothing_is_written(tmp_path):
    train_cross_image(IMAGES, settings(conditional_weight=0.0, epochs=1), run_folder=tmp_path / "run")
    (entry,) = read_gradients(tmp_path / "run")
    assert entry["with_blocks"] == entry["without_blocks"]
    train_cross_image(IMAGES, settings(epochs=1, probe_batches=0), run_folder=tmp_path / "other")
    assert read_gradients(tmp_path / "other") == [] and not (tmp_path / "other" / "gradients.jsonl").exists()


def test_the_probe_changes_nothing():
    probed, alone = (train_cross_image(IMAGES, settings(epochs=1, probe_batches=n))[0] for n in (5, 0))
    assert equal(state(probed), state(alone))


def test_the_median_lies_in_the_middle_of_the_values():
    logs = np.random.default_rng(0).normal(-4, 0.5, 10_001)
    assert median_magnitude(np.histogram(logs, EDGES)[0]) == pytest.approx(np.median(logs), abs=0.02)
    assert np.isnan(median_magnitude(np.zeros(160)))


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"loss": "margin"}, "the loss for this system is 'margin'; wanted one of ms, ms-printed"),
        ({"conditional_weight": 1.5}, "conditional_weight is 1.5; wanted a share between 0 and 1"),
        ({"blocks": 0}, "blocks is 0; wanted 1 or more"),
        ({"negatives": 0}, "negatives is 0; wanted 1 or more"),
        ({"pairs_at_once": 0}, "pairs_at_once is 0; wanted 1 or more"),
        ({"probe_batches": -1}, "probe_batches is -1; wanted 0 or more"),
        ({"block_learning_rate": -1.0}, "block_learning_rate is -1.0; wanted 0 or more"),
        ({"recompute": "yes"}, "recompute is 'yes'"),
        ({"loss_options": {"margin": 1}}, "unknown option 'margin' of the loss ms"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed, said):
    with pytest.raises(InputError, match=said):
        train_cross_image(IMAGES, settings(**changed))


def test_an_encoder_without_a_map_is_refused_before_training(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(len(IMAGES), 6))
    items = Embeddings.from_vectors(vectors, labels=IMAGES.labels)
    save_encoder(tmp_path / "sliced", SlicedEncoder(VectorEncoder(6, 16), 2))
    for encoder, kind in (("linear", "VectorEncoder"), (str(tmp_path / "sliced"), "SlicedEncoder")):
        with pytest.raises(
            InputError, match=f"the encoder is a {kind}, which has no feature map .*; wanted an encoder of pi"
        ):
            train_cross_image(items, settings(encoder=encoder, encoder_options={}), run_folder=tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_sliced_encoder_of_pictures_is_trained(tmp_path):
    save_encoder(tmp_path / "sliced", SlicedEncoder(SmallResNet(dim=16, width=4, last_stride=1), 2))
    chosen = settings(encoder=str(tmp_path / "sliced"), encoder_options={}, epochs=1)
    encoder, _, _ = train_cross_image(IMAGES, chosen)
    assert isinstance(encoder, SlicedEncoder)


def test_a_map_of_few_places_gets_a_warning():
    with pytest.warns(EntourageWarning, match=r"feature map has 2 x 2 places.*last_stride = 1"):
        train_cross_image(IMAGES, settings(epochs=0, encoder_options={"width": 4}))


def test_the_blocks_have_their_own_learning_rate(tmp_path):
    train_cross_image(IMAGES, settings(epochs=1, block_learning_rate=0.02), run_folder=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines[1]["learning_rates"] == [1e-3, 0.02]
