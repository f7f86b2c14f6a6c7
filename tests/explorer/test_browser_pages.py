"""The page in a real browser: the set, dropped queries, addresses, screens, and what may go wrong."""

import io
import time
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys
from tests.explorer.conftest import CLASSES, DIM, PER_CLASS
from tests.explorer.visitor import Page
from tests.report.test_browser import LAPTOP, PHONE, WEAKEST
from tests.serve.running import Running

from entourage.explorer.app import Preparing, make_app

pytestmark = pytest.mark.usefixtures("one_thread")

SCREENS = [(size, scheme) for size in (LAPTOP, PHONE) for scheme in ("light", "dark")]


# ---- the set, queries, addresses -------------------------------------------------------------------------------------


def test_the_set_has_scores_a_verdict_and_labels_to_check(page):
    page.open("#view=set")
    page.until("document.querySelector('.verdict') && document.querySelector('.suspects li')")
    said = page.panel()
    assert "MAP@R" in said and "95 % interval" in said and "Classes that gained and lost most" in said
    rows = page.run("return [...document.querySelectorAll('.suspects > li > .cell')].map((e) => Number(e.dataset.row))")
    assert {1, 30} <= set(rows)
    page.find("#save-suspects").click()
    file, end = page.driver.downloads / "suspected-label-errors.csv", time.monotonic() + 10
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert len(file.read_text().splitlines()) == len(rows) + 1
    page.find(".suspects .cell a").click()
    page.until("document.querySelector('.rankings')")


def test_a_picture_a_text_and_vectors_are_refined_and_ranked(page, tmp_path):
    page.open()
    content = io.BytesIO()
    Image.new("RGB", (20, 20), (85, 0, 0)).save(content, "PNG")  # of class 2
    page.drop("mine.png", content.getvalue())
    page.until("document.querySelectorAll('.rankings .cell').length === 24")
    rows = page.run("return entourage.queries.queries[0].after.rows")
    assert sum(row // PER_CLASS == 2 for row in rows) >= 8
    marks = page.pixels("marks")
    assert page.run("return entourage.map.queries.length") == 1 and (marks[..., 3] > 0).any()
    assert "What it looked at" in page.panel()
    page.drop("mine.txt", b"abcd")  # of class 4
    page.until("entourage.queries.kind === 'text'")
    assert page.run("return entourage.queries.queries[0].after.rows[0]") // PER_CLASS == 4
    vectors = io.BytesIO()
    np.save(vectors, np.eye(3, DIM))
    page.drop("three.npy", vectors.getvalue())
    page.until("entourage.queries.queries.length === 3 && document.querySelector('#panel select')")
    page.drop("bad.npy", b"no vectors")  # what was found before stays, and can still be asked again
    page.until("!document.getElementById('toast').hidden")
    assert page.find("#toast").text.startswith("bad.npy does not begin")
    page.find("[data-method=raw]").click()
    page.until("entourage.queries.settings.method === 'raw' && entourage.queries.queries.length === 3")


def test_what_is_typed_can_be_searched_for_by_meaning(text_page):
    text_page.open()
    text_page.press("/")
    text_page.press("abcd")
    text_page.until("document.querySelector('#found li')?.innerText.includes('search by meaning')")
    text_page.press(Keys.ENTER)
    text_page.until("entourage.queries?.kind === 'text' && document.querySelectorAll('.rankings .cell').length === 24")
    assert "abcd" in text_page.panel() and "What it looked at" in text_page.panel()
    shared = text_page.run("return location.hash")
    assert "ask=abcd" in shared
    text_page.open(shared)
    text_page.until("entourage.queries?.ask === 'abcd' && document.querySelectorAll('.rankings .cell').length === 24")
    text_page.press(Keys.ESCAPE)
    text_page.until("!location.hash.includes('ask') && document.getElementById('panel').dataset.shown === 'welcome'")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.npy", b"", "empty"),
        ("broken.npy", b"\x93NUMPY broken", "broken.npy"),
        ("renamed.npz", b"hello", "does not begin"),
        ("photo.png", b"\x89PNG not really", "no picture"),
        ("other.exe", b"MZ\x00\x01", "no picture"),
        ("words.txt", b"\xff\xfe\xff", "UTF-8"),
    ],
)
def test_bad_files_are_answered_with_a_sentence(page, name, content, said):
    page.open()
    page.drop(name, content)
    page.until("!document.getElementById('toast').hidden")
    assert said in page.find("#toast").text
    assert page.run("return entourage.queries") is None


def test_an_address_that_was_shared_shows_the_same(page):
    fragment = "#item=7&colour=purity&t=1.5&zoom=2.5&x=0.2&y=-0.1&worse=1&theme=dark"
    one = page.open(fragment)
    one.until("document.querySelector('.rankings')")
    first = [page.pixels(), page.panel()]
    two = page.open(fragment)
    two.until("document.querySelector('.rankings')")
    assert np.array_equal(first[0], page.pixels()) and first[1] == page.panel()
    assert page.run(
        "return [entourage.map.step, entourage.map.camera.zoom, document.documentElement.dataset.theme]"
    ) == [1.5, 2.5, "dark"]


@pytest.mark.parametrize(
    "fragment", ["#item=99999", "#item=x&t=nan&colour=nothing&zoom=-3", "#region=~~a_b", "#label=500"]
)
def test_addresses_that_mean_nothing_do_no_harm(page, fragment):
    page.open(fragment)
    page.until("document.getElementById('panel').innerText.length > 10")
    thrown = [each for each in page.complaints() if "404" not in each]
    assert thrown == []


@pytest.mark.parametrize(("size", "scheme"), SCREENS)
@pytest.mark.parametrize("fragment", ["#item=7", "#view=set"])
def test_it_fits_the_screen_and_can_be_read(page, size, scheme, fragment):
    page.open(fragment, size, scheme)
    page.until("document.querySelector('.rankings, .suspects')")
    assert page.run("return document.documentElement.scrollWidth") <= size[0]
    assert page.run(
        "return document.getElementById('panel').scrollWidth <= document.getElementById('panel').clientWidth"
    )
    contrast, text = page.run(WEAKEST)
    assert contrast >= 3, text  # the marks of labels, which are pictures of points
    page.run("document.querySelectorAll('.mark').forEach((mark) => mark.remove())")
    contrast, text = page.run(WEAKEST)
    assert contrast >= 4.5, text
    dark = page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    assert dark == (scheme == "dark")
    assert page.complaints() == []


def test_until_it_is_ready_the_page_says_what_is_done_and_what_went_wrong(browser, desks):
    preparing = Preparing(stage="laying out the map", total=6)
    running = Running(make_app(preparing))
    page = Page(browser, f"{running.url}/")
    try:
        browser.get(page.url)
        page.until("document.getElementById('stage-name').textContent === 'Laying out the map…'")
        assert page.run("return document.getElementById('progress').hasAttribute('value')") is False
        preparing("laying out the map", 3, 6)
        page.until("document.getElementById('progress').value === 0.5")
        preparing.error = "the run is damaged; refine again"
        page.until("document.querySelector('#cover .error')?.innerText.includes('refine again')")
        preparing.error, preparing.desk = None, desks["pictured"]
        page.open().until("document.getElementById('cover').hidden")
    finally:
        running.stop()


def test_labels_differ_by_shape_where_they_are_few(page):
    page.open()
    looks = page.run("return entourage.data.scene.labels.map((_, code) => entourage.cells.mark(code).textContent)")
    assert all(one != other for one, other in pairwise(looks)) and len(set(looks)) == 4


def test_tab_reaches_everything_and_shows_where_it_is(page):
    page.open("#item=7")
    page.until("document.querySelector('.rankings')")
    wanted = {"to-map", "to-set", "search", "ask", "theme", "help", "points", "colour", "worse", "pan", "lasso", "box"}
    wanted |= {"out", "in", "fit", "play", "step", "close", "close-up", "raw", "alpha-qe", "universal", "k", "blend"}
    reached = {}
    for _ in range(60):
        page.press(Keys.TAB)
        name, outline = page.run(
            """const on = document.activeElement, style = getComputedStyle(on);
            return [on.id || on.dataset.mode || on.dataset.method || on.dataset.setting || on.className || on.tagName,
              style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth)]"""
        )
        reached[name] = outline
        if wanted <= set(reached):
            break
    assert wanted <= set(reached)
    assert min(reached[name] for name in wanted) >= 2


def test_open_to_a_network_the_printed_address_opens_the_page(browser, desks):
    running = Running(make_app(Preparing(desks["pictured"]), token="secret"))
    try:
        page = Page(browser, f"{running.url}/?token=secret").open("#item=7")  # what follows brings the cookie
        page.until("document.querySelector('.rankings img')?.naturalWidth > 0")
        browser.delete_all_cookies()
        browser.get(f"{running.url}/")
        assert "open the address that was printed" in page.run("return document.body.innerText")
    finally:
        running.stop()


def test_a_mistaken_address_is_a_sentence_with_a_way_back(page):
    page.open("#item=99999")
    page.until("document.querySelector('#panel .error')")
    assert "There is no item 99999" in page.panel()
    page.find("#panel button").click()
    page.until("document.querySelector('.cards b') && entourage.state.value.item === undefined")
    assert "MAP@R" in page.panel() and "→" in page.panel()


def test_what_is_read_from_files_is_never_markup(page, text_page):
    page.open(f"#label={CLASSES - 6}")  # the hostile label sorts first
    page.until("document.getElementById('panel').innerText.includes('onerror')")
    assert page.run("return document.title") == "pictured · Entourage"
    text_page.open("#item=20")
    text_page.until("document.getElementById('panel').innerText.includes('onerror')")
    assert text_page.run("return [document.title, document.querySelectorAll('#panel img').length]") == [
        "texts · Entourage",
        0,
    ]
    assert text_page.complaints() == []


def test_without_labels_and_pictures_there_is_still_all_that_can_be_said(text_page):
    text_page.open("#view=set")
    text_page.until("document.querySelector('.verdict')")
    assert "no labels" in text_page.panel()
    text_page.open("#item=3")
    text_page.until("document.querySelectorAll('.rankings .cell.open').length === 24")


def test_the_page_in_one_file_opens_from_disk_and_shows_the_same(page, desks, tmp_path):
    from entourage.explorer.export import export_page

    file = export_page(desks["pictured"], tmp_path / "page.html")
    alone = Page(page.driver, file.as_uri())
    served = page.open("#item=7&t=1").pixels()
    page.until("document.querySelector('.attention')")
    lists = "return [...document.querySelectorAll('.rankings li, .attention li')].map((e) => e.innerText)"
    expected = page.run(lists)
    alone.open("#item=7&t=1")
    alone.until("document.querySelector('.attention')")
    assert alone.run(lists) == expected
    assert np.array_equal(alone.pixels(), served)
    alone.press("/")
    alone.press("class 2/04", Keys.ENTER)  # sooner than anything is listed: what was typed counts
    alone.until("entourage.state.value.item === 28")
    assert alone.run("return [...document.images].every((i) => !i.complete || i.naturalWidth > 0)")
    alone.open("#view=set")
    alone.until("document.querySelector('.suspects li') && document.querySelector('.verdict')")
    assert alone.complaints() == []
