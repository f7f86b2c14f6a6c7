import pytest
from tests.cli.shop import FIT, run, write_bad_files, write_good_files


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder of good vectors and labels, a model fitted on them, and everything that can be wrong with either."""
    folder = tmp_path_factory.mktemp("shop")
    write_good_files(folder)
    fitted = run(f"fit {folder}/v.npy --labels {folder}/l.txt --out {folder}/model {FIT}")
    assert fitted.exit_code == 0, fitted.stderr
    write_bad_files(folder)
    return folder


@pytest.fixture
def inside(shop, monkeypatch):
    monkeypatch.chdir(shop)
    return shop
