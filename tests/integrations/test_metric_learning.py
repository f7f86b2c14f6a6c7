"""Metric-learning libraries: our search and losses in their loops, their losses in ours, their tables and results."""

import importlib
import sys
import types

import numpy as np
import pytest

from entourage import rerank, search
from entourage.errors import InputError

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 8
    centres = rng.normal(size=(8, 10))
    return (centres[labels] + 0.7 * rng.normal(size=(120, 10))).astype(np.float32), labels


# ---- pytorch-metric-learning -------------------------------------------------------------------------------------


def test_our_search_finds_what_theirs_finds(labelled):
    inference = pytest.importorskip("pytorch_metric_learning.utils.inference")
    from pytorch_metric_learning.distances import CosineSimilarity

    from entourage.integrations.metric_learning import knn_func

    X = torch.tensor(labelled[0])
    theirs = inference.CustomKNN(CosineSimilarity())
    for arguments in ((X, 7, X, True), (X[:20], 7, X, True), (X[:20], 7, X[20:], False)):
        assert torch.equal(knn_func(*arguments)[1], theirs(*arguments)[1])
    distances, indices = knn_func(X, 7)
    unit = torch.nn.functional.normalize(X)
    assert torch.allclose(distances, (unit[:, None] - unit[indices]).norm(dim=2), atol=1e-3)
    with pytest.raises(InputError, match="120 queries and 20 references"):
        knn_func(X, 3, X[:20], True)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning")  # of their trainer
def test_our_loss_trains_in_their_trainer(labelled):
    trainers = pytest.importorskip("pytorch_metric_learning.trainers")
    from entourage.integrations.metric_learning import MetricLoss

    X, y = torch.tensor(labelled[0]), torch.tensor(labelled[1])
    torch.manual_seed(0)
    trunk, loss = torch.nn.Linear(10, 4), MetricLoss("ms")
    before = loss(trunk(X), y).item()
    trainer = trainers.MetricLossOnly(
        models={"trunk": trunk},
        optimizers={"trunk_optimizer": torch.optim.Adam(trunk.parameters(), 0.05)},
        batch_size=60,
        loss_funcs={"metric_loss": loss},
        dataset=torch.utils.data.TensorDataset(X, y),
        data_device=torch.device("cpu"),
        dataloader_num_workers=0,
        freeze_trunk_batchnorm=False,
    )
    trainer.train(num_epochs=5)
    assert loss(trunk(X), y).item() < before - 0.05


def test_a_loss_of_ours_takes_no_mined_pairs(labelled):
    pytest.importorskip("pytorch_metric_learning")
    from entourage.integrations.metric_learning import MetricLoss

    with pytest.raises(InputError, match="mined pairs"):
        MetricLoss("ms")(torch.eye(4), torch.tensor([0, 0, 1, 1]), (torch.tensor([0]),) * 4)


def test_their_loss_trains_in_our_loop(labelled):
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    from entourage.training.losses import build_loss

    X, y = torch.tensor(labelled[0]), torch.tensor(labelled[1])
    theirs = losses.NTXentLoss(temperature=0.1)
    unit = torch.nn.functional.normalize(X).requires_grad_()
    ours = build_loss(theirs, n_classes=8, dim=10)
    assert ours(unit, y).item() == pytest.approx(theirs(unit, y).item())
    ours(unit, y).backward()
    assert unit.grad.abs().sum() > 0


# ---- Open Metric Learning ----------------------------------------------------------------------------------------


class Results:
    """RetrievalResults as far as a post-processor sees them; the library's own needs torchvision to be imported."""

    def __init__(self, distances, retrieved_ids, gt_ids=None):
        self.distances, self.retrieved_ids, self.gt_ids = tuple(distances), tuple(retrieved_ids), gt_ids


def results_class():
    """The library's class where its module can be loaded by itself, past an __init__ that loads torchvision."""
    try:
        oml = importlib.import_module("oml")
        package = types.ModuleType("oml.retrieval")
        package.__path__ = [f"{oml.__path__[0]}/retrieval"]
        sys.modules.setdefault("oml.retrieval", package)
        return importlib.import_module("oml.retrieval.retrieval_results").RetrievalResults
    except ImportError:
        return None


@pytest.mark.parametrize("kind", ["ours", "theirs"])
def test_results_are_reranked_and_what_lies_beyond_stays_behind(labelled, kind):
    from entourage.integrations.open_metric_learning import ContextPostprocessor

    kind = Results if kind == "ours" else results_class()
    if kind is None:
        pytest.skip("Open Metric Learning is not there; it wants numpy < 2: pip install --no-deps")
    queries, gallery = labelled[0][:10], labelled[0][10:]
    found = search(queries, gallery, 30)
    given = kind(
        distances=list(torch.tensor(1 - found.similarities)), retrieved_ids=list(torch.tensor(found.rows)), gt_ids=None
    )
    done = ContextPostprocessor(torch.tensor(queries), gallery, top_n=25).process(given)
    assert isinstance(done, kind)
    for row, ids in enumerate(done.retrieved_ids):
        expected = rerank(queries[row], gallery[found.rows[row, :25]], ids=np.arange(25))
        assert ids[:25].tolist() == found.rows[row, :25][expected.rows].tolist()
        assert ids[25:].tolist() == found.rows[row, 25:].tolist()
        assert (done.distances[row].diff() >= 0).all()
    with pytest.raises(InputError, match="10 lists for 3 queries"):
        ContextPostprocessor(queries[:3], gallery).process(given)


def table_arguments():
    paths = [f"photos/{row}.png" for row in range(8)]
    return paths, ["cat", "cat", "dog", "dog"] * 2, ["train"] * 4 + ["validation"] * 4


def test_a_table_is_written_as_the_library_reads_it_and_we_do(tmp_path):
    from PIL import Image

    from entourage import data
    from entourage.integrations.open_metric_learning import write_table

    (tmp_path / "photos").mkdir()
    for row in range(8):
        Image.new("L", (4, 4), 30 * row).save(tmp_path / f"photos/{row}.png")
    query = [False] * 4 + [True, False, True, False]
    write_table(
        tmp_path / "t.csv", *table_arguments(), is_query=query, is_gallery=[not q for q in query], sequences=range(8)
    )
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "path,label,split,is_query,is_gallery,label_name,sequence"
    assert lines[1] == "photos/0.png,0,train,,,cat,0" and lines[5] == "photos/4.png,0,validation,True,False,cat,4"
    assert data.load(str(tmp_path / "t.csv"), "query").labels.tolist() == [0, 1]
    try:
        check = importlib.import_module("oml.utils.dataframe_format").check_retrieval_dataframe_format
    except ImportError:
        return
    check(tmp_path / "t.csv", dataset_root=tmp_path, verbose=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"splits": ["test"] * 8}, "the split of photos/0.png is 'test'; wanted train or validation"),
        ({"is_query": [False] * 8, "is_gallery": [False] * 8}, "photos/4.png is neither query nor gallery"),
        ({"is_gallery": [False] * 6 + [True] * 2}, "the class cat of some queries is not in the gallery"),
        ({"is_query": [1] * 8}, "wanted True or False for each picture"),
        ({"labels": ["cat"]}, "8"),
    ],
)
def test_a_table_that_the_library_would_refuse_is_not_written(tmp_path, change, said):
    from entourage.integrations.open_metric_learning import write_table

    arguments = dict(zip(("paths", "labels", "splits"), table_arguments(), strict=True)) | change
    with pytest.raises(InputError, match=said):
        write_table(tmp_path / "t.csv", **arguments)
    assert not (tmp_path / "t.csv").exists()
