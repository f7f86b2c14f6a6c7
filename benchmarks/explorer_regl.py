"""regl-scatterplot beside the page of `entourage explore`: the same points, by its own transition, frame by frame.

It is served with the places of a page that runs, from a folder in which `npm install regl-scatterplot` was run, so
that the two draw the same in a canvas of the same size.
"""

import functools
import http.server
import threading
import urllib.request
from pathlib import Path

import numpy as np
from selenium import webdriver

__all__ = ["regl_frames"]

PAGE = """<!doctype html><meta charset="utf-8"><title>regl-scatterplot</title>
<style>body { margin: 0 } #box { width: %dpx; height: %dpx } canvas { width: 100%%; height: 100%% }</style>
<div id="box"><canvas id="points"></canvas></div>
<script src="node_modules/regl/dist/regl.js"></script>
<script type="importmap">
{"imports": {"pub-sub-es": "./node_modules/pub-sub-es/dist/index.js", "regl": "./regl.mjs"}}
</script>
<script type="module">
import createScatterplot from "./node_modules/regl-scatterplot/dist/regl-scatterplot.esm.js";
const canvas = document.getElementById("points"), { width, height } = canvas.getBoundingClientRect();
const plot = createScatterplot({ canvas, width, height, pointSize: 4 });
const read = async (name) => new Float32Array(await (await fetch(name)).arrayBuffer());
const half = (places, rest) => places.filter((_, at) => at %% 2 === rest);
const columns = (places) => ({ x: half(places, 0), y: half(places, 1) });
const [before, after] = (await Promise.all([read("before.bin"), read("after.bin")])).map(columns);
Object.assign(globalThis, { plot, before, after });
document.body.dataset.ready = "yes";
</script>"""

# Milliseconds between the frames that the library itself draws during its transition; each is finished by readPixels.
FRAMES = """
const [empty, seconds, done] = arguments, times = [], pixel = new Uint8Array(4);
const gl = plot.get("regl")._gl;
const nothing = { x: [2], y: [2] };  // a point that is not seen: it has no canvas without one
(async () => {
  await plot.draw(empty ? nothing : before);
  let last = performance.now(), on = true;
  plot.subscribe("transitionEnd", () => (on = false));
  plot.draw(empty ? { x: [3], y: [3] } : after, { transition: true, transitionDuration: 1000 * seconds });
  const tick = () => {
    gl.readPixels(0, 0, 1, 1, 6408, 5121, pixel);
    times.push(performance.now() - last);
    last = performance.now();
    if (on && times.length < 400) requestAnimationFrame(tick);
    else done(times.sort((a, b) => a - b)[times.length >> 1]);
  };
  requestAnimationFrame(tick);
})();
"""


def regl_frames(page: webdriver.Chrome, address: str, folder: Path, count: int, frames: int) -> dict[str, float]:
    """The time of a frame during a transition of regl-scatterplot, and its ratio to one that moves no points."""
    size = page.execute_script("const c = document.getElementById('points'); return [c.clientWidth, c.clientHeight]")
    with urllib.request.urlopen(f"{address}api/places") as answer:
        places = np.frombuffer(answer.read(), np.float32).reshape(-1, count, 2)
    files = {
        "/": (PAGE % tuple(size)).encode(),
        "/before.bin": places[0].tobytes(),
        "/after.bin": places[-1].tobytes(),
        "/regl.mjs": b"export default globalThis.createREGL;",
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, files, folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.get(f"http://127.0.0.1:{server.server_port}/")
        while not page.execute_script("return document.body.dataset.ready"):
            pass
        empty = page.execute_async_script(FRAMES, True, frames / 20)
        full = page.execute_async_script(FRAMES, False, frames / 10)
    finally:
        server.shutdown()
    return {
        "regl-scatterplot: frame of the empty canvas, ms": round(empty, 1),
        "regl-scatterplot: frame of its transition, ms": round(full, 1),
        "regl-scatterplot: ratio to the empty canvas": round(full / empty, 2),
    }


class _Files(http.server.SimpleHTTPRequestHandler):
    """Files in memory, then those of a folder."""

    def __init__(self, files: dict[str, bytes], folder: Path, *given) -> None:
        self._files = files
        super().__init__(*given, directory=str(folder))

    def do_GET(self) -> None:
        if self.path not in self._files:
            super().do_GET()
            return
        body = self._files[self.path]
        self.send_response(200)
        kinds = {"/": "text/html; charset=utf-8", "/regl.mjs": "text/javascript"}
        self.send_header("content-type", kinds.get(self.path, "application/octet-stream"))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given) -> None:
        """Say nothing."""
