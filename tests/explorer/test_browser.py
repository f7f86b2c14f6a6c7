"""The page in a real browser, by pixels and state: the map and its items."""

import time

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from tests.explorer.conftest import CLASSES, PER_CLASS

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT = CLASSES * PER_CLASS


# ---- the map ---------------------------------------------------------------------------------------------------------


def test_every_item_is_drawn_at_its_place_in_the_colour_of_its_label(page):
    drawn = page.open().pixels()
    colours = page.run("return entourage.map.colours.labels").copy()
    codes = page.run("return Array.from(entourage.data.codes)")
    right = 0
    for row in range(COUNT):
        x, y = (round(each) for each in page.place(row))
        wanted = [int(colours[codes[row] % 8][at : at + 2], 16) for at in (1, 3, 5)]
        right += drawn[y, x, 3] > 150 and np.abs(drawn[y, x, :3].astype(int) - wanted).max() < 60
    assert right > 0.8 * COUNT  # the others lie under some
    assert page.complaints() == []


def test_the_slider_moves_every_point_and_play_goes_from_before_to_after(page):
    after = page.open().pixels()
    page.run(
        "const s = document.getElementById('step'); s.value = 0; s.dispatchEvent(new Event('input'));"
        "s.dispatchEvent(new Event('change'))"
    )
    before = page.pixels()
    assert (before != after).any(axis=2).sum() > 500
    assert page.run("return entourage.map.step") == 0 and "t=0" in page.driver.current_url
    expected = page.run("return Array.from(entourage.data.steps[0].slice(0, 2))")
    assert page.run("return entourage.map.place(0)") == pytest.approx(expected)
    page.find("#play").click()
    page.until("entourage.map.step > 0.5 && entourage.map.step < 2.9")
    page.until("!entourage.timeline.playing && entourage.map.step === entourage.data.scene.steps")
    assert np.array_equal(page.pixels(), after)


def test_colours_say_gain_and_loss_and_shapes_say_it_too(page):
    by_label = page.open().pixels()
    by_gain = page.open("#colour=gain").pixels()
    assert (by_label != by_gain).any(axis=2).sum() > 500
    assert "▼" in page.find("#legend").text and "▲" in page.find("#legend").text
    for name in ("trust", "purity", "hubness"):
        assert (page.open(f"#colour={name}").pixels() != by_gain).any()


def test_only_what_got_worse_can_be_shown(page):
    whole = page.open().pixels()
    page.find("#worse").click()
    page.until("entourage.map.shown.includes(0)")
    gains = page.run("return entourage.data.column('gain').then(([, after]) => Array.from(after))")
    assert page.run("return Array.from(entourage.map.shown)") == [2 if gain < -1e-9 else 0 for gain in gains]
    assert (page.pixels()[..., 3] > 0).sum() < 0.7 * (whole[..., 3] > 0).sum()
    assert page.find("#worse-count").text == str(sum(gain < -1e-9 for gain in gains))
    codes = page.run("return Array.from(entourage.data.codes)")
    worse = {code for code, gain in zip(codes, gains, strict=True) if gain < -1e-9}
    assert set(page.run("return entourage.map.named.drawn")) <= worse  # no name where nothing is shown


def test_hovering_shows_the_picture_and_the_label(page):
    page.open()
    page.point_at(40).perform()
    page.until("!document.getElementById('hover').hidden")
    row = int(page.find("#hover").get_attribute("data-row"))
    label = page.run("return entourage.cells.label(arguments[0])", row)
    assert label in page.find("#hover").text
    page.until("document.querySelector('#hover img').naturalWidth === 24")


def test_names_of_labels_do_not_overlap_and_there_are_more_of_them_nearer(page):
    page.open()
    boxes = page.run("return entourage.map.named.boxes")
    for at, one in enumerate(boxes):
        for other in boxes[:at]:
            assert one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
    for part in ("legend", "timeline"):
        left, top, right, bottom = page.run(
            "const [r, s] = [arguments[0], 'stage'].map((id) => document.getElementById(id).getBoundingClientRect());"
            "return [r.left - s.left, r.top - s.top, r.right - s.left, r.bottom - s.top]",
            part,
        )
        assert all(b[0] >= right or left >= b[2] or b[1] >= bottom or top >= b[3] for b in boxes)
    page.run("entourage.map.camera.zoom = 0.6; entourage.map.redraw()")
    far = len(page.settled().run("return entourage.map.named.drawn"))
    page.run("entourage.map.camera.zoom = 1; entourage.map.redraw()")
    assert 0 < far <= len(page.settled().run("return entourage.map.named.drawn"))
    page.run("entourage.map.closeUp(0, [1, 2, 3])")
    near = page.settled().run(
        """const { map } = entourage, { width, height } = map.camera;
        return map.named.drawn.map((code) => map.camera.toScreen(...map.names.place(code, map.step)))
          .every(([x, y]) => x >= 0 && y >= 0 && x <= width && y <= height)"""
    )
    assert near  # what is out of sight is not named


@pytest.mark.parametrize("mode", ["lasso", "box"])
def test_drawing_around_items_tells_what_they_have_in_common_and_exports_ids(page, mode):
    page.open()
    page.find(f"[data-mode={mode}]").click()
    canvas = page.find("#points")
    wide, high = canvas.size["width"] // 2 - 60, canvas.size["height"] // 2 - 110
    path = (
        ActionChains(page.driver, duration=10).move_to_element_with_offset(canvas, -wide, -high + 20).click_and_hold()
    )
    corners = [(wide, high)] if mode == "box" else [(wide, -high + 20), (wide, high), (-wide, high)]
    for x, y in corners:
        path.move_to_element_with_offset(canvas, x, y)
    path.release().perform()
    page.until("location.hash.includes('region=') && document.getElementById('save-selection')")
    inside = set(page.run("return entourage.selected"))
    assert 10 < len(inside) <= COUNT and f"{len(inside)} items" in page.panel()
    assert "What they have in common" in page.panel() and "Gain or loss" in page.panel()
    for each in page.driver.downloads.glob("*"):
        each.unlink()
    page.find("#save-selection").click()
    file = page.driver.downloads / "selection.csv"
    end = time.monotonic() + 10
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert len(file.read_text().splitlines()) == len(inside) + 1
    page.press("[", "[")  # the address is the selection as it was drawn, wherever points are now
    page.until("entourage.state.value.t === 1")
    again = page.open(page.run("return location.hash"))
    again.until("document.getElementById('save-selection')")
    assert set(again.run("return entourage.selected")) == inside and again.run("return entourage.map.step") == 1


# ---- an item ---------------------------------------------------------------------------------------------------------


def test_a_click_opens_an_item_links_lead_on_and_back_leads_back(page):
    page.open()
    page.point_at(40).click().perform()
    page.until("document.querySelectorAll('.rankings .cell').length === 24")
    first = page.run("return entourage.state.value.item")
    assert page.run("return entourage.map.focus.row") == first
    frames = page.run("""return [...document.querySelectorAll('.rankings .cell')].map((cell) =>
      [cell.classList[1], getComputedStyle(cell).borderTopStyle, cell.querySelector('.sign').textContent])""")
    assert {tuple(each) for each in frames} <= {("right", "solid", "✓"), ("wrong", "dashed", "✗")}
    page.find(".attention summary").click()
    assert "they share" in page.panel().lower() and "neighbours" in page.panel()
    assert page.run("return document.querySelectorAll('.rankings path').length") > 3
    page.find(".rankings .after .cell a").click()
    page.until("entourage.state.value.item !== arguments[0]", first)
    page.driver.back()
    page.until("entourage.state.value.item === arguments[0] && entourage.map.focus?.row === arguments[0]", first)
    link = page.find(".rankings .after .cell a")
    ActionChains(page.driver).move_to_element(link).perform()
    page.until("entourage.map.pointed === Number(arguments[0].dataset.row)", link)
    page.find("#close-up").click()
    page.until("entourage.state.value.zoom > 1.2")
    x, y = page.place(first)
    assert [x, y] == pytest.approx(page.run("return entourage.map.camera.middle"), abs=1)


def test_search_by_keys_alone_finds_a_label_and_an_item(page):
    page.open()
    page.press("/")
    page.press("class d")
    page.until("document.querySelectorAll('#found li').length === 1")
    page.press(Keys.ENTER)
    page.until("entourage.data.scene.labels[entourage.map.only] === 'class d'")
    page.until("document.getElementById('panel').innerText.includes('13 items with this label')")
    assert "class d" in page.find("#panel h2").text and page.run("return entourage.map.named.drawn.length") == 1
    page.press("/")
    page.press("class 2/04")
    page.until("document.querySelector('#found li[role=option] img')")
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    page.until("entourage.state.value.item === 28 && document.querySelector('.rankings')")


def test_everything_is_reached_by_keys(page):
    page.open()
    page.run("document.getElementById('points').focus()")
    page.press("n", Keys.ENTER)
    page.until("entourage.state.value.item !== undefined && document.querySelector('.rankings')")
    page.press(Keys.ESCAPE)
    page.until("entourage.state.value.item === undefined")
    page.press("[")
    page.until("entourage.map.step === 2")
    page.press(" ")
    page.until("entourage.timeline.playing")
    page.press(" ")
    page.until("!entourage.timeline.playing")
    page.press("c")
    page.until("document.getElementById('colour').value === 'gain'")
    page.press("+", Keys.ARROW_LEFT)
    page.until("entourage.map.camera.zoom > 1.3 && entourage.map.camera.x < -0.01")
    page.press("0", "s")
    page.until("document.querySelector('.scores')")
    page.press("s", "?")
    page.until("document.getElementById('keys').open")


def test_a_method_and_its_sliders_change_what_is_seen_at_once(page):
    page.open("#item=40")
    page.until("document.querySelector('[data-method=raw]')")
    page.find("[data-method=raw]").click()
    listed = (
        "['before', 'after'].map((w) => [...document.querySelectorAll(`.rankings .${w} li`)].map((e) => e.dataset.row))"
    )
    page.until("document.querySelector('[data-method=raw]').getAttribute('aria-checked') === 'true'")
    page.until(f"(() => {{ const [a, b] = {listed}; return a.join() === b.join(); }})()")
    page.find("[data-method=universal]").click()
    page.until("document.querySelector('[data-setting=steps]')")
    first = page.run("return document.querySelector('.rankings .after').innerText")
    slider = page.find("[data-setting=steps]")
    page.run("arguments[0].value = 1; arguments[0].dispatchEvent(new Event('input'))", slider)
    page.until("document.querySelector('.rankings .after').innerText !== arguments[0]", first)
    assert slider.is_displayed()  # it is the same one: a slider that is held must not be replaced
    assert "steps=1" in page.driver.current_url
    before, after = page.run(f"return {listed}")
    assert before != after
    address = page.run("return location.hash")
    page.find("#as-kept").click()
    page.until("document.querySelector('.rankings .after').innerText === arguments[0]", first)
    page.until("document.querySelector('[data-setting=steps]').value === '3'")  # as the run has it
    assert "steps" not in page.driver.current_url and "This is what the run did" in page.panel()
    page.open(address).until("document.querySelector('[data-setting=steps]')?.value === '1'")
