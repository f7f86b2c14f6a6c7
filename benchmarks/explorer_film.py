"""The page of a run while it plays, as a moving picture for the documentation.

python benchmarks/explorer_film.py runs/demo docs/images/explorer.webp
"""

import argparse
import io
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver

from explorer import browser, served

WIDTH, HEIGHT = 1200, 680
SHOWN = "return document.body.dataset.ready && !entourage.map.wanted && !document.body.classList.contains('busy')"

GO = """const { data, map, timeline } = entourage, step = arguments[0] * data.scene.steps;
timeline.show(step);
map.setStep(step);"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("run", type=Path)
    options.add_argument("out", type=Path, help="a .webp or .gif")
    options.add_argument("--frames", type=int, default=36, help="of the way from before to after")
    options.add_argument("--item", type=int, help="an item to show beside the map")
    given = options.parse_args()
    process, address = served(given.run)
    page = browser(WIDTH, HEIGHT)
    try:
        page.get(address + ("" if given.item is None else f"#item={given.item}"))
        pictures = [_picture(page, share) for share in _shares(given.frames)]
    finally:
        page.quit()
        process.terminate()
        process.wait()
    times = [1200, *[70] * (len(pictures) - 2), 1800]  # milliseconds: one looks at both ends
    first, *others = pictures
    first.save(given.out, save_all=True, append_images=others, duration=times, loop=0, quality=70, method=4)
    print(f"Written to {given.out}: {given.out.stat().st_size / 2**20:.1f} MB")


def _shares(frames: int) -> list[float]:
    """From 0 to 1, slow at both ends."""
    steps = [number / (frames - 1) for number in range(frames)]
    return [2 * share**2 if share < 0.5 else 1 - 2 * (1 - share) ** 2 for share in steps]


def _picture(page: webdriver.Chrome, share: float) -> Image.Image:
    _wait(page)
    page.execute_script(GO, share)
    _wait(page)
    return Image.open(io.BytesIO(page.get_screenshot_as_png())).convert("RGB")


def _wait(page: webdriver.Chrome) -> None:
    while not page.execute_script(SHOWN):
        time.sleep(0.02)


if __name__ == "__main__":
    main()
