"""The page of a run while it plays, then an item that gained much, as a moving picture for the documentation.

python benchmarks/explorer_film.py runs/demo docs/images/explorer.webp
"""

import argparse
import io
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver

from explorer import browser, served

WIDTH, HEIGHT = 960, 600
SHOWN = "return document.body.dataset.ready && !entourage.map.wanted && !document.body.classList.contains('busy')"
# of the pictures that are seen: the others are loaded when they are scrolled to
LOADED = """return [...document.images].every((image) => {
  const { top, bottom } = image.getBoundingClientRect();
  return image.complete || bottom < 0 || top > innerHeight;
})"""

GO = """const { data, map, timeline } = entourage, step = arguments[0] * data.scene.steps;
timeline.show(step);
map.setStep(step);"""

OPEN = """const done = arguments[arguments.length - 1];
entourage.data.column("gain").then(([, gains]) => {
  const order = [...gains.keys()].sort((one, other) => gains[other] - gains[one]);
  entourage.state.set({ item: arguments[0] ?? order[0] });
  const wait = setInterval(() => {
    if (!document.querySelector(".rankings path")) return;
    clearInterval(wait);
    done();
  }, 50);
});"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("run", type=Path, help="a run with labels")
    options.add_argument("out", type=Path, help="a .webp or .gif")
    options.add_argument("--frames", type=int, default=40, help="of the way from before to after")
    options.add_argument("--item", type=int, help="the item at the end; by default the one that gained most")
    given = options.parse_args()
    pictures = _filmed(given.run, given.frames, given.item)
    times = [1300, *[60] * (given.frames - 2), 1600, 3000]  # milliseconds: one looks at both ends, and at the item
    first, *others = pictures
    first.save(given.out, save_all=True, append_images=others, duration=times, loop=0, quality=72, method=6)
    print(f"Written to {given.out}: {given.out.stat().st_size / 2**20:.1f} MB")


def _filmed(run: Path, frames: int, item: int | None) -> list[Image.Image]:
    process, address = served(run)
    page = browser(WIDTH, HEIGHT)
    page.set_script_timeout(120)
    screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        page.get(f"{address}#theme=light")
        pictures = [_picture(page, share) for share in _shares(frames)]
        page.execute_async_script(OPEN, item)
        return [*pictures, _picture(page, 1.0)]
    finally:
        page.quit()
        process.terminate()
        process.wait()


def _shares(frames: int) -> list[float]:
    """From 0 to 1, slow at both ends."""
    steps = [number / (frames - 1) for number in range(frames)]
    return [2 * share**2 if share < 0.5 else 1 - 2 * (1 - share) ** 2 for share in steps]


def _picture(page: webdriver.Chrome, share: float) -> Image.Image:
    _wait(page, SHOWN)
    page.execute_script(GO, share)
    _wait(page, SHOWN)
    _wait(page, LOADED)
    return Image.open(io.BytesIO(page.get_screenshot_as_png())).convert("RGB")


def _wait(page: webdriver.Chrome, until: str) -> None:
    while not page.execute_script(until):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
