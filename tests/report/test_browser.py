"""The report in a browser: a laptop and a phone, light and dark."""

import shutil

import pytest

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no chromium with its chromedriver"),
    pytest.mark.usefixtures("one_thread"),
]

LAPTOP, PHONE = (1366, 768), (390, 844)
SCREENS = [(size, scheme) for size in (LAPTOP, PHONE) for scheme in ("light", "dark")]

# The contrast of every text with what lies behind it, as WCAG defines it; [contrast, text] of the weakest.
WEAKEST = """
// rgb(255, 255, 255), or color(srgb 1 1 1 / 0.5) where colours are mixed
const parts = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number)
  .map((value, at) => (at < 3 && colour.startsWith("color(srgb") ? 255 * value : value));
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parts(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
let weakest = [21, ""];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
  if (!own || !element.getClientRects().length) continue;
  const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < weakest[0]) weakest = [contrast, own];
}
return weakest;
"""


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, reports):
    def show(name: str, size: tuple[int, int] = LAPTOP, scheme: str = "light"):
        width, height = size
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(reports[name].as_uri())
        return browser

    return show


@pytest.mark.parametrize("name", ["labelled", "bare", "trained"])
@pytest.mark.parametrize(("size", "scheme"), SCREENS)
def test_it_fits_the_screen_and_can_be_read(show, name, size, scheme):
    page = show(name, size, scheme)
    assert page.execute_script("return document.documentElement.scrollWidth") <= size[0]
    contrast, text = page.execute_script(WEAKEST)
    assert contrast >= 4.5, text
    assert page.get_log("browser") == []  # nothing was refused by the policy, nothing went wrong


@pytest.mark.parametrize("name", ["labelled", "trained"])
def test_every_picture_is_there(show, name):
    sizes = show(name).execute_script("return [...document.images].map((i) => i.complete && i.naturalWidth)")
    assert sizes and all(sizes)


def test_it_is_dark_where_the_reader_is(show):
    shade = "return getComputedStyle(document.body).backgroundColor"
    filtered = "return getComputedStyle(document.querySelector('figure.chart img')).filter"
    page = show("labelled", LAPTOP, "light")
    assert page.execute_script(shade) == "rgb(255, 255, 255)" and page.execute_script(filtered) == "none"
    page = show("labelled", LAPTOP, "dark")
    assert page.execute_script(shade) == "rgb(21, 24, 29)" and "invert" in page.execute_script(filtered)


def test_a_ranking_has_eight_in_a_row_and_four_on_a_phone(show):
    tops = "return [...document.querySelector('.ranking ol').children].map((e) => e.getBoundingClientRect().top)"
    assert len(set(show("labelled", LAPTOP).execute_script(tops))) == 1
    assert len(set(show("labelled", PHONE).execute_script(tops))) == 2


def test_a_phone_gets_the_narrow_chart_and_moves_the_others_sideways(show):
    widths = "return [...document.querySelectorAll('figure img')].map((i) => [i.naturalWidth, i.width])"
    wide = show("labelled", LAPTOP).execute_script(widths)
    small = show("labelled", PHONE).execute_script(widths)
    narrow = [after for before, after in zip(wide, small, strict=True) if after[0] < before[0]]
    assert narrow and all(drawn <= PHONE[0] for _, drawn in narrow)
    for (natural, _), (same, drawn) in zip(wide, small, strict=True):
        assert same < natural or drawn >= 0.7 * natural
    beyond = """return [...document.querySelectorAll('figure .sideways')]
      .every((e) => e.scrollWidth <= e.clientWidth || getComputedStyle(e).overflowX === 'auto')"""
    assert show("labelled", PHONE).execute_script(beyond)


def test_right_and_wrong_differ_by_more_than_colour(show):
    styles = """return ['right', 'wrong'].map((kind) => {
      const cell = document.querySelector('li.cell.' + kind);
      return [getComputedStyle(cell).borderTopStyle, cell.querySelector('.mark').textContent];
    })"""
    assert show("labelled").execute_script(styles) == [["solid", "✓"], ["dashed", "✗"]]


def test_links_of_the_contents_lead_to_their_sections(show):
    page = show("labelled")
    anchors = page.execute_script("return [...document.querySelectorAll('nav a')].map((a) => a.hash)")
    assert anchors[0] == "#scores"
    found = page.execute_script("return arguments[0].every((hash) => document.querySelector(hash))", anchors)
    assert found
