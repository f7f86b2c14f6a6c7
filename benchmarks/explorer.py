"""The page of `entourage explore` with many items: how soon it shows them, how it plays, what the server holds.

    python benchmarks/explorer.py --points 60000 --most 1000000

A synthetic set is refined and kept (not timed), served by the command itself, and opened in headless Chromium, which
draws in software. Frame times are therefore ratios: to the same page while it plays with no points on its canvas. The
larger map is made in the browser of the points of the smaller one, a little apart; server and search are not asked
about those.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from selenium import webdriver

FRAMES = """
const done = arguments[arguments.length - 1], count = arguments[0];
const { map, data } = entourage, times = [];
let step = 0;
function tick() {
  const begun = performance.now();
  map.setStep(step = (step + 0.02) % data.scene.steps);
  requestAnimationFrame(() => {
    const pixel = new Uint8Array(4);
    if (map.points) map.points.gl.readPixels(0, 0, 1, 1, 6408, 5121, pixel);  // waits until all is drawn
    times.push(performance.now() - begun);
    if (times.length < count) tick();
    else done(times.sort((a, b) => a - b)[count >> 1]);
  });
}
tick();
"""

MORE = """
const count = arguments[0], { map, data } = entourage, own = data.scene.points;
const spread = (places) => {
  const more = new Float32Array(2 * count);
  for (let at = 0; at < 2 * count; at++) more[at] = places[at % (2 * own)] + 0.01 * Math.sin(at);
  return more;
};
map.points.setPlaces(data.steps.map(spread));
map.points.setCodes(Int32Array.from({ length: count }, (_, row) => row % 32));
map.points.setShown(new Uint8Array(count).fill(2));
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--points", type=int, default=60_000)
    options.add_argument("--most", type=int, default=1_000_000)
    options.add_argument("--dim", type=int, default=64)
    options.add_argument("--frames", type=int, default=60)
    options.add_argument("--out", type=Path, help="a .json for the figures")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        _make(run, given.points, given.dim)
        print(
            f"{given.points:,} items of {given.dim} dimensions; laying out the map for the first time ...", flush=True
        )
        found = {"points": given.points} | _measured(run, given.most, given.frames)
    print(json.dumps(found, indent=2))
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


def _make(run: Path, count: int, dim: int) -> None:
    from entourage.refiner.estimator import ContextRefiner
    from entourage.runs.refine import write_refinement
    from entourage.values import Embeddings

    rng = np.random.default_rng(0)
    labels = rng.integers(max(count // 60, 2), size=count)
    centres = rng.normal(size=(labels.max() + 1, dim))
    items = Embeddings.from_vectors(centres[labels] + 0.8 * rng.normal(size=(count, dim)), labels=labels)
    write_refinement(run, ContextRefiner().fit(items.without_labels()), items)


def _measured(run: Path, most: int, frames: int) -> dict[str, float]:
    started = time.perf_counter()
    process, address = served(run)
    page = browser()
    try:
        _opened(page, address)
        found = {"seconds_until_shown_the_first_time": round(time.perf_counter() - started, 1)}
        page.get("about:blank")
        found |= _opened(page, address)  # as every time after: the map is kept with the run
        found |= _playing(page, most, frames)
        found["server_memory_mb"] = _memory(process.pid)
        return found
    finally:
        page.quit()
        process.terminate()
        process.wait()


def served(run: Path) -> tuple[subprocess.Popen, str]:
    """The command on a run, and its address."""
    line = [sys.executable, "-m", "entourage", "explore", str(run), "--port", "0", "--no-browser"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address is not None
    return process, address[0]


def browser(width: int = 1366, height: int = 768) -> webdriver.Chrome:
    """Chromium without a window, which draws in software."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        f"--window-size={width},{height}",
        *software,
    ):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def _opened(page: webdriver.Chrome, address: str) -> dict[str, float]:
    """Milliseconds from the request until something is painted, and until the map can be used."""
    page.get(address)
    while not page.execute_script("return document.body.dataset.ready && !entourage.map.wanted"):
        time.sleep(0.02)
    paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    return {
        "first_paint_ms": round(page.execute_script(paint) or -1),
        "interactive_ms": round(page.execute_script("return performance.getEntriesByName('ready')[0].startTime")),
    }


def _playing(page: webdriver.Chrome, most: int, frames: int) -> dict[str, float]:
    page.set_script_timeout(600)
    full = page.execute_async_script(FRAMES, frames)
    count = page.execute_script("const was = entourage.map.points.count; entourage.map.points.count = 0; return was")
    empty = page.execute_async_script(FRAMES, frames)
    page.execute_script("entourage.map.points.count = arguments[0]", count)
    page.execute_script(MORE, most)
    many = page.execute_async_script(FRAMES, max(frames // 6, 3))
    return {
        "frame_ms_empty": round(empty, 2),
        "frame_ms": round(full, 2),
        "frame_ratio_to_empty": round(full / empty, 2),
        "most_points": most,
        "frame_ms_most": round(many, 2),
        "frame_ratio_to_empty_most": round(many / empty, 2),
    }


def _memory(pid: int) -> int:
    told = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", told)
    return int(found[1]) // 1024 if found else -1


if __name__ == "__main__":
    main()
