"""The page of `entourage explore` with many items: how soon it shows them, how it plays, what the server holds.

    python benchmarks/explorer.py --points 60000 --most 1000000 [--regl FOLDER] [--out NAME]

A synthetic set is refined and kept (not timed), served by the command itself, and opened in headless Chromium, which
draws in software. Frame times are therefore ratios: to the same page while it plays with no points on its canvas. The
larger map is made in the browser of the points of the smaller one, a little apart; server and search are not asked
about those.

With --regl, a folder in which `npm install regl-scatterplot` was run, that library draws the same points in a canvas of
the same size, moving from before to after by its own transition, beside its own canvas without points.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from selenium import webdriver

from explorer_regl import regl_frames
from markers import fill

DOCS = Path(__file__).parent.parent / "docs" / "explorer.md"

# Milliseconds of a frame while the map plays: the median of those between one frame and the next, each finished.
FRAMES = """
const done = arguments[arguments.length - 1], count = arguments[0];
const { map, data } = entourage, times = [], pixel = new Uint8Array(4);
let [step, begun] = [0, 0];
function tick() {
  begun = performance.now();
  map.setStep(step = (step + 0.02) % data.scene.steps);
  requestAnimationFrame(() => {
    map.points.gl.readPixels(0, 0, 1, 1, 6408, 5121, pixel);  // waits until all is drawn
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
map.drawn = count;  // points are drawn as small as so many are
map.points.setPlaces(data.steps.map(spread));
map.points.setCodes(Int32Array.from({ length: count }, (_, row) => row % 32));
map.points.setShown(new Uint8Array(count).fill(2));
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--points", type=int, default=60_000)
    options.add_argument("--most", type=int, default=1_000_000)
    options.add_argument("--dim", type=int, default=64)
    options.add_argument("--frames", type=int, default=40)
    options.add_argument("--run", type=Path, help="a run that was kept, instead of a synthetic set")
    options.add_argument("--regl", type=Path, help="a folder with node_modules/regl-scatterplot")
    options.add_argument("--out", type=Path, help="where the figures go: NAME.json, NAME.md and docs/explorer.md")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = given.run or _made(Path(folder) / "run", given.points, given.dim)
        print("opening the page; the first time, the map is laid out ...", flush=True)
        found = measured(run, given.most, given.frames, given.regl)
    print(table(found))
    if given.out:
        given.out.with_suffix(".json").write_text(json.dumps(found, indent=2) + "\n")
        given.out.with_suffix(".md").write_text(table(found))
        fill(DOCS, "explorer", table(found))


def _made(run: Path, count: int, dim: int) -> Path:
    from entourage.refiner.estimator import ContextRefiner
    from entourage.runs.refine import write_refinement
    from entourage.values import Embeddings

    print(f"refining {count:,} items of {dim} dimensions ...", flush=True)
    rng = np.random.default_rng(0)
    labels = rng.integers(max(count // 60, 2), size=count)
    centres = rng.normal(size=(labels.max() + 1, dim))
    items = Embeddings.from_vectors(centres[labels] + 0.8 * rng.normal(size=(count, dim)), labels=labels)
    write_refinement(run, ContextRefiner().fit(items.without_labels()), items)
    return run


def measured(run: Path, most: int, frames: int, regl: Path | None) -> dict[str, float]:
    """All figures of a run; each first time is the first."""
    started = time.perf_counter()
    process, address = served(run)
    page = browser()
    page.set_script_timeout(600)
    try:
        _opened(page, address)
        found: dict[str, float] = {"seconds until shown the first time": round(time.perf_counter() - started, 1)}
        page.get("about:blank")
        found |= _opened(page, address)  # as every time after: the map is kept with the run
        found |= _playing(page, most, frames)
        found["memory of the server, MB"] = _memory(process.pid)
        if regl is not None:
            found |= regl_frames(page, address, regl, int(found["points"]), frames)
        return found
    finally:
        page.quit()
        process.terminate()
        process.wait()


def served(run: Path) -> tuple[subprocess.Popen, str]:
    """The command on a run, once it is ready, and its address."""
    line = [sys.executable, "-m", "entourage", "explore", str(run), "--port", "0", "--no-browser"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address is not None
    while not _answer(address[0])["ready"]:  # a browser that waits would take a part of the machine
        time.sleep(0.2)
    return process, address[0]


def _answer(address: str) -> dict:
    with urllib.request.urlopen(f"{address}api/progress") as told:
        return json.load(told)


def browser(width: int = 1366, height: int = 768) -> webdriver.Chrome:
    """Chromium without a window, which draws in software."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    plain = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars")
    for argument in (*plain, *software, f"--window-size={width},{height}"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def _opened(page: webdriver.Chrome, address: str) -> dict[str, float]:
    """Milliseconds from the request until something is painted, and until the map can be used."""
    page.get(address)
    while not page.execute_script("return document.body.dataset.ready && !entourage.map.wanted"):
        time.sleep(0.1)
    paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    return {
        "points": page.execute_script("return entourage.data.scene.points"),
        "first paint, ms": round(page.execute_script(paint) or -1),
        "interactive, ms": round(page.execute_script("return performance.getEntriesByName('ready')[0].startTime")),
    }


def _playing(page: webdriver.Chrome, most: int, frames: int) -> dict[str, float]:
    full = page.execute_async_script(FRAMES, frames)
    count = page.execute_script("const was = entourage.map.points.count; entourage.map.points.count = 0; return was")
    empty = page.execute_async_script(FRAMES, frames)
    page.execute_script("entourage.map.points.count = arguments[0]", count)
    page.execute_script(MORE, most)
    many = page.execute_async_script(FRAMES, max(frames // 4, 3))
    return {
        "frame of the empty map, ms": round(empty, 1),
        "frame while playing, ms": round(full, 1),
        "ratio to the empty map": round(full / empty, 2),
        f"frame while playing {most:,} points, ms": round(many, 1),
        f"ratio to the empty map, {most:,} points": round(many / empty, 2),
    }


def _memory(pid: int) -> int:
    told = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", told)
    return int(found[1]) // 1024 if found else -1


def table(found: dict[str, float]) -> str:
    """The figures as a table of Markdown."""
    lines = [f"| {name} | {value:,} |" for name, value in found.items()]
    return "\n".join(["| headless Chromium, drawing in software | |", "|---|---:|", *lines]) + "\n"


if __name__ == "__main__":
    main()
