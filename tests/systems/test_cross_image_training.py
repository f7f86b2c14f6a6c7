"""Training by conditional embeddings: what is learned, what it equals, what is kept, and the gradients on the way."""

import json

import numpy as np
import pytest
import torch

from entourage.encoder_training import CHECKPOINT
from entourage.encoders import load_encoder
from entourage.errors import EntourageWarning, InputError
from entourage.evaluation import mean_average_precision_at_r
from entourage.losses import build_loss
from entourage.runs import SYSTEMS, train_run
from entourage.settings import CrossImageSettings, TrainSettings
from entourage.systems.baseline import train_baseline
from entourage.systems.cross_image import GradientProbe, load_blocks, train_cross_image
from entourage.systems.cross_image.probe import EDGES, median_magnitude, read_gradients
from entourage.systems.cross_image.training import KEPT, hardest_pairs
from entourage.values import Embeddings

from .stripes import stripes

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


def state(module) -> list[torch.Tensor]:
    return [value.clone() for value in module.state_dict().values()]


def equal(left, right) -> bool:
    return len(left) == len(right) and all(map(torch.equal, left, right))


def map_at_r(encoder) -> float:
    vectors = encoder.eval()(torch.from_numpy(IMAGES.pixels / np.float32(255))).detach().numpy()
    return mean_average_precision_at_r(Embeddings.from_vectors(vectors, labels=IMAGES.labels))


def test_the_classes_it_learns_from_come_apart():
    chosen = settings(epochs=10, blocks=1, learning_rate=3e-3, validation_share=0.0)
    untrained, _ = train_cross_image(IMAGES, settings(epochs=0))
    encoder, history = train_cross_image(IMAGES, chosen)
    assert map_at_r(encoder) > map_at_r(untrained) + 0.1
    assert history.curve[-1]["loss"] < history.curve[1]["loss"]


def test_without_conditional_similarities_it_is_the_baseline_to_the_bit():
    ours, history = train_cross_image(IMAGES, settings(conditional_weight=0.0))
    theirs, wanted = train_baseline(IMAGES, TrainSettings(**SETTINGS))
    assert equal(state(ours), state(theirs)) and history == wanted
    with_blocks, _ = train_cross_image(IMAGES, settings())
    assert not equal(state(with_blocks), state(theirs))


def test_the_encoder_gives_the_same_vectors_with_the_blocks_removed(tmp_path):
    """What is saved and used at test time is the encoder alone."""
    from entourage.encoders import save_encoder

    encoder, _ = train_cross_image(IMAGES, settings(epochs=1), run_folder=tmp_path / "run")
    blocks = load_blocks(tmp_path / "run" / KEPT)
    save_encoder(tmp_path / "encoder", encoder)
    alone, pictures = load_encoder(tmp_path / "encoder"), torch.rand(5, 1, 16, 16)
    vectors, maps = encoder.with_map(pictures)
    blocks(vectors, blocks.context(maps))
    assert torch.equal(alone(pictures), vectors) and torch.equal(encoder(pictures), vectors)


def test_the_loss_is_the_weighted_mean_of_both_losses():
    """The first batch, before any step, where the blocks still change nothing: both losses are alike."""
    losses = []
    for weight in (0.0, 0.3, 1.0):
        _, history = train_cross_image(IMAGES, settings(conditional_weight=weight, epochs=1, learning_rate=0.0))
        losses.append(history.curve[1]["loss"])
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)


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
    unbroken, wanted = train_cross_image(IMAGES, settings(), run_folder=tmp_path / "unbroken")
    with pytest.raises(KeyboardInterrupt):
        train_cross_image(IMAGES, settings(), run_folder=tmp_path / "run", progress=interrupt_in(2))
    assert (tmp_path / "run" / CHECKPOINT).exists() and not (tmp_path / "run" / KEPT).exists()
    encoder, history = train_cross_image(IMAGES, settings(), run_folder=tmp_path / "run", resume=True)
    assert history == wanted and equal(state(encoder), state(unbroken))
    ours, theirs = (load_blocks(tmp_path / name / KEPT) for name in ("run", "unbroken"))
    assert equal(state(ours), state(theirs))
    entries = read_gradients(tmp_path / "run")
    assert [entry["epoch"] for entry in entries] == [1, 2, 3]
    assert entries == read_gradients(tmp_path / "unbroken")


def test_a_run_of_the_command_keeps_encoder_blocks_and_gradients(tmp_path):
    for number, label in enumerate(IMAGES.labels):
        (tmp_path / "pictures" / f"class {label:02}").mkdir(parents=True, exist_ok=True)
        IMAGES.picture(number).save(tmp_path / "pictures" / f"class {label:02}" / f"{number}.png")
    run = train_run(
        tmp_path / "pictures", tmp_path / "run", system="cross-image", settings=settings(epochs=1), nmi=False
    )
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
    probe.watch(seen, unconditional, loss)
    loss.backward()
    probe.watch(seen, unconditional, loss)  # beyond the one batch asked for
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
        ({"loss": "margin"}, "the loss is 'margin'; wanted one that takes similarities: ms or ms-printed"),
        ({"conditional_weight": 1.5}, "conditional_weight is 1.5; wanted a share between 0 and 1"),
        ({"blocks": 0}, "blocks is 0; wanted 1 or more"),
        ({"negatives": 0}, "negatives is 0; wanted 1 or more"),
        ({"pairs_at_once": 0}, "pairs_at_once is 0; wanted 1 or more"),
        ({"probe_batches": -1}, "probe_batches is -1; wanted 0 or more"),
        ({"block_learning_rate": -1.0}, "block_learning_rate is -1.0; wanted 0 or more"),
        ({"recompute": "yes"}, "recompute is 'yes'"),
        ({"loss_options": {"margin": 1}}, "'ms' has no option 'margin'"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed, said):
    with pytest.raises(InputError, match=said):
        train_cross_image(IMAGES, settings(**changed))


def test_a_map_of_few_places_gets_a_warning():
    with pytest.warns(EntourageWarning, match=r"feature map has 2 x 2 places.*last_stride = 1"):
        train_cross_image(IMAGES, settings(epochs=0, encoder_options={"width": 4}))


def test_the_blocks_have_their_own_learning_rate(tmp_path):
    train_cross_image(IMAGES, settings(epochs=1, block_learning_rate=0.02), run_folder=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines[1]["learning_rates"] == [1e-3, 0.02]
