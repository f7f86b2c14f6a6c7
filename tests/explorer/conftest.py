"""Small refinements, pages of them behind a real port, and a browser."""

import shutil

import numpy as np
import pytest
from PIL import Image
from tests.report.pictures import draw_colours
from tests.serve.running import Running

from entourage.explorer.app import Preparing, make_app
from entourage.explorer.desk import Desk
from entourage.explorer.queries import Encoder
from entourage.explorer.scene import Scene
from entourage.refiner.estimator import ContextRefiner
from entourage.runs.media import Media, PictureSource
from entourage.runs.refine import write_refinement
from entourage.runs.refinement_run import open_refinement
from entourage.values import Embeddings

CLASSES, PER_CLASS, DIM = 6, 12, 8
HOSTILE = "<img src=x onerror=document.title='hacked'>"


def vectors_of(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(CLASSES), PER_CLASS)
    centres = np.random.default_rng(1).normal(size=(CLASSES, DIM))
    return centres[codes] + 0.45 * rng.normal(size=(len(codes), DIM))


def names_of_classes() -> np.ndarray:
    names = np.array([f"class {letter}" for letter in "abcde"] + [HOSTILE])
    return np.repeat(names, PER_CLASS)


def encode(pictures) -> np.ndarray:
    """An encoder of the tests: a picture, or a text, of class n is the centre of that class."""
    centres = np.random.default_rng(1).normal(size=(CLASSES, DIM))
    codes = [
        each.getpixel((0, 0))[0] // 40 if isinstance(each, Image.Image) else len(each) % CLASSES for each in pictures
    ]
    return centres[codes]


@pytest.fixture(scope="session")
def refiner():
    return ContextRefiner(n_steps=3).fit(Embeddings.from_vectors(vectors_of()))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    return draw_colours(tmp_path_factory.mktemp("pictures"), CLASSES, PER_CLASS)


@pytest.fixture(scope="session")
def pictured(tmp_path_factory, refiner, pictures):
    """A run of pictures with labels, one of them markup, two of them wrong."""
    ids = np.array([f"class {code}/{shot:02}.png" for code in range(CLASSES) for shot in range(PER_CLASS)])
    labels = names_of_classes()
    labels[[1, 30]] = labels[[40, 2]]
    items = Embeddings.from_vectors(vectors_of(), ids=ids, labels=labels)
    folder = tmp_path_factory.mktemp("runs") / "pictured"
    write_refinement(folder, refiner, items, media=Media(PictureSource(str(pictures), split="train,test")))
    return folder


@pytest.fixture(scope="session")
def texts(tmp_path_factory, refiner):
    """Texts without labels, searched in a gallery of their own."""
    words = [f"text {row} {HOSTILE}" for row in range(CLASSES * PER_CLASS)]
    gallery = Embeddings.from_vectors(vectors_of())
    queries = Embeddings.from_vectors(vectors_of(5)[::6])
    folder = tmp_path_factory.mktemp("runs") / "texts"
    media = Media(texts=[f"query {row}" for row in range(len(queries))], context_texts=words)
    write_refinement(folder, refiner, queries, gallery, media=media)
    return folder


@pytest.fixture(scope="session")
def desks(pictured, texts):
    """Name -> what answers for a run."""
    encoder = Encoder(f"{__name__}:encode")
    return {
        "pictured": Desk(Scene(open_refinement(pictured)), encoder).prepare(),
        "texts": Desk(Scene(open_refinement(texts)), encoder).prepare(),
    }


@pytest.fixture(scope="session")
def urls(desks):
    """Name -> the address of a page."""
    running = {name: Running(make_app(Preparing(desk))) for name, desk in desks.items()}
    yield {name: each.url for name, each in running.items()}
    for each in running.values():
        each.stop()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium without a window; what it downloads goes to `browser.downloads`."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver_path = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver_path):
        pytest.skip("there is no chromium with its chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", *software):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    driver.downloads = tmp_path_factory.mktemp("downloads")
    allowed = {"behavior": "allow", "downloadPath": str(driver.downloads)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, urls):
    from tests.explorer.visitor import Page

    browser.get_log("browser")
    return Page(browser, f"{urls['pictured']}/")


@pytest.fixture
def text_page(browser, urls):
    from tests.explorer.visitor import Page

    browser.get_log("browser")
    return Page(browser, f"{urls['texts']}/")
