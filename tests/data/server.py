"""A web server on this machine that can do what servers do: send ranges, break off, refuse."""

import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by name; `sends_ranges`; `announces` how much it sends; `breaks_after`: bytes of each answer after which
    the line goes dead."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.sends_ranges = True
        self.announces = True
        self.breaks_after: list[int] = []
        self.asked: list[str | None] = []  # the Range of every request
        self.address = ""


@contextmanager
def serving():
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(site: Site):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            site.asked.append(asked)
            content = site.files.get(self.path.strip("/"))
            if content is None:
                self.send_error(404)
                return
            start = int(re.match(r"bytes=(\d+)-", asked)[1]) if asked and site.sends_ranges else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if site.announces:
                self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            stop = start + site.breaks_after.pop(0) if site.breaks_after else len(content)
            with suppress(ConnectionError):  # whoever asked has heard enough
                self.wfile.write(content[start:stop])

        def log_message(self, *_):
            pass

    return Handler
