"""The multi-similarity loss against plain loops over points on a circle, and against pytorch-metric-learning."""

import math

import pytest
import torch
from pytorch_metric_learning.losses import MultiSimilarityLoss

from entourage.errors import InputError
from entourage.training.losses import build_loss, multi_similarity, multi_similarity_of

ALPHA, BETA, THRESHOLD = 2.0, 40.0, 0.5


def on_circle(*degrees, dtype=torch.float64) -> torch.Tensor:
    radians = torch.deg2rad(torch.tensor(degrees, dtype=dtype))
    return torch.stack([radians.cos(), radians.sin()], dim=1)


def by_loops(degrees, labels, c: float) -> float:
    """Eq. 4 word for word, c = 0 as printed or 1 as usual; a similarity is the cosine of the angle between."""

    def log(x: float) -> float:
        return math.log(x) if x > 0 else -math.inf

    total = 0.0
    for q in range(len(degrees)):
        positives = negatives = c
        for k in range(len(degrees)):
            similarity = math.cos(math.radians(degrees[q] - degrees[k]))
            if labels[q] != labels[k]:
                negatives += math.exp(BETA * (similarity - THRESHOLD))
            elif q != k:
                positives += math.exp(-ALPHA * (similarity - THRESHOLD))
        total += log(positives) / ALPHA + log(negatives) / BETA
    return total / len(degrees)


BATCHES = [
    ([0, 20, 40, 60, 80, 100], [0, 0, 1, 1, 2, 2]),
    ([0, 20, 40, 60, 80, 100], [0, 1, 0, 1, 0, 1]),
    ([0, 180, 90, 270], [0, 0, 1, 1]),  # classes as far apart as can be
    ([0, 0, 10, 10], [0, 0, 1, 1]),  # copies
    ([5, 50, 77, 130, 200, 201, 300], [3, 3, 3, 3, 8, 8, 8]),  # classes of different size
]


@pytest.mark.parametrize(("degrees", "labels"), BATCHES)
@pytest.mark.parametrize(("form", "c"), [("usual", 1.0), ("printed", 0.0)])
def test_both_forms_equal_plain_loops(degrees, labels, form, c):
    loss = multi_similarity(on_circle(*degrees), torch.tensor(labels), form=form)
    assert loss.item() == pytest.approx(by_loops(degrees, labels, c), rel=1e-12)


@pytest.mark.parametrize("form", ["usual", "printed"])
def test_the_form_that_takes_similarities_is_the_same_loss_to_the_bit(form):
    embeddings, labels = on_circle(*BATCHES[-1][0], dtype=torch.float32), torch.tensor(BATCHES[-1][1])
    similarity = (embeddings @ embeddings.T).fill_diagonal_(7.0)  # which nothing may depend on
    wanted = multi_similarity(embeddings, labels, form=form)
    assert torch.equal(multi_similarity_of(similarity, labels, form=form), wanted)
    named = build_loss("ms" if form == "usual" else "ms-printed", n_classes=2, dim=2)
    assert torch.equal(named.of_similarities(similarity, labels), named(embeddings, labels))


def test_two_pairs_by_hand():
    """Classes at 0, 0 and 90, 90 degrees: one positive of similarity 1 and two negatives of 0 for every anchor."""
    loss = multi_similarity(on_circle(0, 0, 90, 90), torch.tensor([0, 0, 1, 1]))
    positive = math.log(1 + math.exp(-2 * 0.5)) / 2
    negative = math.log(1 + 2 * math.exp(-40 * 0.5)) / 40
    assert loss.item() == pytest.approx(positive + negative, rel=1e-12)


def test_the_usual_form_is_the_default():
    batch = on_circle(0, 20, 40, 60), torch.tensor([0, 0, 1, 1])
    assert multi_similarity(*batch).item() == multi_similarity(*batch, form="usual").item()
    assert multi_similarity(*batch).item() != multi_similarity(*batch, form="printed").item()


# ---- anchors that lack something ---------------------------------------------------------------------------------


def test_an_anchor_without_positives_adds_nothing_in_the_usual_form_and_is_minus_infinite_as_printed():
    degrees, labels = [0, 30, 70], [0, 0, 1]  # the last has no positive
    embeddings = on_circle(*degrees).requires_grad_()
    loss = multi_similarity(embeddings, torch.tensor(labels))
    assert loss.item() == pytest.approx(by_loops(degrees, labels, c=1.0), rel=1e-12)
    loss.backward()
    assert embeddings.grad.isfinite().all() and embeddings.grad.abs().sum() > 0
    assert multi_similarity(embeddings, torch.tensor(labels), form="printed").item() == -math.inf


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 0]], ids=["no positives", "no negatives"])
def test_a_whole_batch_without_positives_or_negatives_is_finite_in_the_usual_form(labels):
    embeddings = on_circle(0, 30, 70).requires_grad_()
    loss = multi_similarity(embeddings, torch.tensor(labels))
    assert loss.item() == pytest.approx(by_loops([0, 30, 70], labels, c=1.0), rel=1e-12)
    loss.backward()
    assert embeddings.grad.isfinite().all()
    assert multi_similarity(embeddings, torch.tensor(labels), form="printed").item() == -math.inf


def test_the_same_item_twice_in_a_batch_is_its_own_positive_but_not_its_own_anchor():
    assert multi_similarity(on_circle(0, 0, 90), torch.tensor([0, 0, 1])).item() == pytest.approx(
        by_loops([0, 0, 90], [0, 0, 1], c=1.0), rel=1e-12
    )


# ---- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["usual", "printed"])
def test_large_exponents_do_not_overflow(form):
    """exp(2000 * 0.5) is beyond float64; its logarithm divided by beta is not."""
    embeddings = on_circle(0, 0, 0, 0, dtype=torch.float32).requires_grad_()
    loss = multi_similarity(embeddings, torch.tensor([0, 0, 1, 1]), beta=2000.0, form=form)
    positive = math.log((form == "usual") + math.exp(-1)) / 2
    assert loss.item() == pytest.approx(positive + 0.5 + math.log(2) / 2000, abs=1e-6)
    loss.backward()
    assert embeddings.grad.isfinite().all()


@pytest.mark.parametrize("form", ["usual", "printed"])
def test_gradients_agree_with_finite_differences(form):
    embeddings = on_circle(0, 35, 80, 120, 200, 275).requires_grad_()
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    assert torch.autograd.gradcheck(lambda e: multi_similarity(e, labels, form=form), embeddings)


def test_descending_the_loss_brings_classes_together_and_apart():
    degrees = torch.tensor([0.0, 60.0, 30.0, 90.0], requires_grad=True)  # classes interleaved
    labels = torch.tensor([0, 0, 1, 1])
    optimizer = torch.optim.SGD([degrees], lr=50)
    for _ in range(300):
        optimizer.zero_grad()
        radians = torch.deg2rad(degrees)
        multi_similarity(torch.stack([radians.cos(), radians.sin()], dim=1), labels).backward()
        optimizer.step()
    similarity = torch.cos(torch.deg2rad(degrees[:, None] - degrees)).detach()
    within, between = similarity[[0, 2], [1, 3]], similarity[:2, 2:]
    assert within.min() > between.max() + 0.3


# ---- against pytorch-metric-learning -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_usual_form_is_the_loss_of_pytorch_metric_learning(seed):
    """Also with lone classes: both leave the missing term at log 1. They agree on every batch without a miner."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.nn.functional.normalize(torch.randn(64, 16, generator=generator, dtype=torch.float64))
    labels = torch.randint(20, (64,), generator=generator)
    labels[:4] = torch.tensor([100, 101, 102, 103])
    ours, theirs = embeddings.clone().requires_grad_(), embeddings.clone().requires_grad_()
    our_loss = multi_similarity(ours, labels)
    their_loss = MultiSimilarityLoss(alpha=ALPHA, beta=BETA, base=THRESHOLD)(theirs, labels)
    assert our_loss.item() == pytest.approx(their_loss.item(), rel=1e-10)
    our_loss.backward()
    their_loss.backward()
    # Theirs normalises its input first, so its gradient lacks the part along the vector: remove that part of ours.
    radial = (ours.grad * embeddings).sum(dim=1, keepdim=True) * embeddings
    torch.testing.assert_close(ours.grad - radial, theirs.grad, rtol=1e-8, atol=1e-12)


def test_an_unknown_form_is_refused():
    with pytest.raises(InputError, match="'original'"):
        multi_similarity(on_circle(0, 1), torch.tensor([0, 0]), form="original")


# ---- mining ------------------------------------------------------------------------------------------------------


def mined_by_loops(similarity, labels, margin, alpha=2.0, beta=40.0, threshold=0.5) -> float:
    """As the authors of the loss write it: anchor by anchor, those of which nothing is left adding nothing."""
    total = 0.0
    for i, row in enumerate(similarity.tolist()):
        positives = [s for j, s in enumerate(row) if labels[j] == labels[i] and j != i]
        negatives = [s for j, s in enumerate(row) if labels[j] != labels[i]]
        if not positives or not negatives:
            continue
        kept = [s for s in positives if s - margin < max(negatives)]
        pushed = [s for s in negatives if s + margin > min(positives)]
        if kept and pushed:
            total += math.log(1 + sum(math.exp(-alpha * (s - threshold)) for s in kept)) / alpha
            total += math.log(1 + sum(math.exp(beta * (s - threshold)) for s in pushed)) / beta
    return total / len(labels)


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2, 2, 3], [0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_mined_pairs_equal_plain_loops(labels, margin):
    vectors = torch.nn.functional.normalize(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    vectors.requires_grad_(True)
    loss = multi_similarity(vectors, torch.tensor(labels), mining_margin=margin)
    assert loss.item() == pytest.approx(mined_by_loops(vectors @ vectors.T, labels, margin), abs=1e-6)
    loss.backward()
    assert vectors.grad.isfinite().all()


def test_mining_leaves_out_easy_pairs_only():
    """Classes far apart: nothing is hard. Among classes that overlap, a wide margin leaves nothing out."""
    apart, labels = torch.eye(2).repeat_interleave(2, dim=0), torch.tensor([0, 0, 1, 1])
    assert multi_similarity(apart, labels, mining_margin=0.1).item() == 0
    assert multi_similarity(apart, labels).item() > 0
    mixed = torch.nn.functional.normalize(torch.randn(4, 2, generator=torch.Generator().manual_seed(1)), dim=1)
    assert multi_similarity(mixed, labels, mining_margin=3.0) == multi_similarity(mixed, labels)
