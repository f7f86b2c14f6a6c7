"""The losses by name: against plain formulas, downhill on a toy problem, and finite on batches that lack something."""

import pytest
import torch
from pytorch_metric_learning import losses as pml
from torch import nn
from torch.nn import functional as F

from entourage.errors import InputError
from entourage.training.losses import LOSSES, build_loss, multi_similarity

N_CLASSES, DIM = 6, 8
LABELS = torch.arange(N_CLASSES).repeat_interleave(4)

VARIANTS = [(name, {}) for name in LOSSES] + [
    ("margin", {"learn_beta": True, "nu": 0.01}),
    ("triplet", {"mining": "distance"}),
    ("triplet", {"mining": "all"}),
]
FINITE = [(name, options) for name, options in VARIANTS if name != "ms-printed"]
every_loss = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
every_finite_loss = pytest.mark.parametrize(("name", "options"), FINITE, ids=str)


def unit_vectors(count=24, dim=DIM, seed=0) -> torch.Tensor:
    return F.normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)))


def build(name, options=None, dim=DIM) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build_loss(name, N_CLASSES, dim, **options or {})


# ---- values ------------------------------------------------------------------------------------------------------


def distances(embeddings) -> torch.Tensor:
    return (embeddings[:, None] - embeddings).square().sum(dim=2).sqrt()


def by_loops(name, embeddings, labels, loss) -> float:
    """The mean over the pairs, triplets or items that count, as the papers have it."""
    d = distances(embeddings).tolist()
    same = (labels[:, None] == labels).tolist()
    n = len(labels)
    if name == "contrastive":
        within = [d[i][j] for i in range(n) for j in range(n) if i != j and same[i][j]]
        between = [1 - d[i][j] for i in range(n) for j in range(n) if not same[i][j] and d[i][j] < 1]
        return sum(within) / len(within) + sum(between) / len(between)
    if name == "triplet":  # semi-hard: the negative is farther than the positive, by less than the margin
        gaps = [
            d[a][k] - d[a][p]
            for a in range(n)
            for p in range(n)
            for k in range(n)
            if a != p and same[a][p] and not same[a][k]
        ]
        losses = [0.2 - gap for gap in gaps if 0 < gap <= 0.2]
        return sum(losses) / len(losses)
    cosines = embeddings @ F.normalize(next(loss.parameters()) if name == "proxy-anchor" else loss.criterion.W.T).T
    own = F.one_hot(labels, N_CLASSES).bool()
    if name == "normalised-softmax":
        return F.cross_entropy(cosines / 0.05, labels).item()
    pull = torch.where(own, torch.exp(-32 * (cosines - 0.1)), 0).sum(dim=0).log1p().sum() / len(labels.unique())
    push = torch.where(own, 0, torch.exp(32 * (cosines + 0.1))).sum(dim=0).log1p().sum() / N_CLASSES
    return (pull + push).item()


@pytest.mark.parametrize("name", ["contrastive", "triplet", "normalised-softmax", "proxy-anchor"])
def test_values_equal_the_formula(name):
    embeddings, loss = unit_vectors().double(), build(name).double()
    assert loss(embeddings, LABELS).item() == pytest.approx(by_loops(name, embeddings, LABELS, loss), rel=1e-6)


def test_margin_equals_its_formula_for_the_triplets_it_mined():
    embeddings, loss = unit_vectors(), build("margin")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the first draw
        anchors, positives, negatives = loss.miner(embeddings, LABELS)
    d = distances(embeddings)
    pull = F.relu(d[anchors, positives] - 1.2 + 0.2)
    push = F.relu(1.2 - d[anchors, negatives] + 0.2)
    wanted = (pull + push).sum() / ((pull > 0).sum() + (push > 0).sum())
    assert loss(embeddings, LABELS).item() == pytest.approx(wanted.item(), rel=1e-5)
    assert (d[anchors, negatives] < 1.4).all()


@pytest.mark.parametrize(("name", "form"), [("ms", "usual"), ("ms-printed", "printed")])
def test_multi_similarity_is_our_own_in_either_form(name, form):
    embeddings = unit_vectors()
    settings = {"alpha": 3.0, "beta": 30.0, "threshold": 0.4}
    ours = multi_similarity(embeddings, LABELS, form=form, **settings)
    assert build(name, settings)(embeddings, LABELS).item() == ours.item()
    if name == "ms":
        theirs = pml.MultiSimilarityLoss(alpha=3.0, beta=30.0, base=0.4)(embeddings, LABELS)
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


# ---- learning ----------------------------------------------------------------------------------------------------


@every_loss
def test_descending_a_loss_brings_classes_together(name, options):
    inputs = unit_vectors(dim=16) + 0.3 * unit_vectors(N_CLASSES, 16, seed=1)[LABELS]
    net, loss = nn.Linear(16, DIM, bias=False), build(name, options)
    with torch.no_grad():
        net.weight.copy_(unit_vectors(DIM, 16, seed=2))
    optimizer = torch.optim.Adam([{"params": net.parameters()}, {"params": loss.parameters(), "lr": 0.1}], 0.02)

    def apart() -> float:
        """Mean similarity within classes less that between them."""
        embeddings = F.normalize(net(inputs)).detach()
        similarity, same = embeddings @ embeddings.T, LABELS[:, None] == LABELS
        return (similarity[same].mean() - similarity[~same].mean()).item()

    before, values = apart(), []
    for _ in range(100):
        value = loss(F.normalize(net(inputs)), LABELS)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert apart() > before + 0.1
    if "mining" not in options and name not in ("triplet", "margin"):  # a mean over the hard ones need not fall
        assert values[-1] < 0.8 * values[0]


@pytest.mark.parametrize(("name", "shape"), [("proxy-anchor", (6, 8)), ("normalised-softmax", (8, 6))])
def test_proxies_are_parameters_of_the_loss(name, shape):
    loss = build(name)
    (proxies,) = loss.parameters()
    assert proxies.shape == shape
    loss(unit_vectors(), LABELS).backward()
    assert proxies.grad.abs().sum() > 0


def test_the_boundary_of_the_margin_loss_is_learned_per_class_if_asked():
    assert list(build("margin").parameters()) == []
    loss = build("margin", {"learn_beta": True, "beta": 1.1})
    (boundary,) = loss.parameters()
    assert boundary.tolist() == pytest.approx([1.1] * N_CLASSES)
    loss(unit_vectors(), LABELS).backward()
    assert boundary.grad.abs().sum() > 0


# ---- what a batch may lack ---------------------------------------------------------------------------------------

ONE = unit_vectors(1)
DEGENERATE = {
    "no positives": (unit_vectors(6), [0, 1, 2, 3, 4, 5]),
    "no negatives": (unit_vectors(6), [3] * 6),
    "copies of one vector": (ONE.expand(6, DIM), [0, 0, 1, 1, 2, 2]),
    "opposite vectors": (torch.cat([ONE, -ONE] * 3), [0, 0, 1, 1, 2, 2]),
    "one item": (ONE, [2]),
}


@every_finite_loss
@pytest.mark.parametrize("batch", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_a_batch_that_lacks_something_gives_a_finite_loss_and_finite_gradients(name, options, batch):
    embeddings, loss = batch[0].clone().requires_grad_(), build(name, options)
    value = loss(embeddings, torch.tensor(batch[1]))
    value.backward()
    assert value.isfinite() and value.shape == ()
    assert embeddings.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in loss.parameters())


# ---- mining ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), [("margin", {}), ("triplet", {"mining": "distance"})])
def test_mining_goes_on_where_the_state_says_and_leaves_the_global_state_alone(name, options):
    first, embeddings = build(name, options), unit_vectors()
    before = torch.get_rng_state()
    values = [first(embeddings, LABELS).item() for _ in range(5)]
    assert torch.equal(torch.get_rng_state(), before)
    assert len(set(values)) > 1, "other pairs every time"
    again = build(name, options)
    assert [again(embeddings, LABELS).item() for _ in range(3)] == values[:3]
    resumed = build(name, options)
    resumed.load_state_dict(again.state_dict())
    assert [resumed(embeddings, LABELS).item() for _ in range(2)] == values[3:]


# ---- what is accepted --------------------------------------------------------------------------------------------


def test_a_loss_object_of_pytorch_metric_learning_is_taken_as_it_is():
    theirs = pml.CircleLoss()
    loss = build_loss(theirs, N_CLASSES, DIM)
    assert loss(unit_vectors(), LABELS).item() == theirs(unit_vectors(), LABELS).item()


def test_the_parameters_of_a_loss_object_are_those_of_the_loss():
    theirs = pml.ArcFaceLoss(N_CLASSES, DIM)
    assert [id(p) for p in build_loss(theirs, N_CLASSES, DIM).parameters()] == [id(p) for p in theirs.parameters()]


def test_a_plain_function_will_do():
    loss = build_loss(lambda embeddings, labels: embeddings.square().mean(), N_CLASSES, DIM)
    assert loss(unit_vectors(), LABELS).item() == pytest.approx(1 / DIM)


def test_a_loss_built_here_is_not_wrapped_again():
    loss = build("margin")
    assert build_loss(loss, N_CLASSES, DIM) is loss


@pytest.mark.parametrize(
    ("loss", "options", "said"),
    [
        ("tripplet", {}, "'tripplet'; wanted one of contrastive, margin, ms"),
        ("ms", {"gamma": 1}, "unknown option 'gamma' of the loss ms; wanted one of alpha, beta, threshold"),
        ("triplet", {"mining": "easy"}, "mining is 'easy'; wanted one of semihard, all, distance"),
        (lambda e, y: 0, {"margin": 1}, "an object and cannot take the options margin"),
        (7, {}, "the loss is 7; wanted a name"),
    ],
)
def test_what_cannot_be_built_is_refused_with_what_can(loss, options, said):
    with pytest.raises(InputError, match=said):
        build_loss(loss, N_CLASSES, DIM, **options)
