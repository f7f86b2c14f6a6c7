"""A service behind a real port, in a thread."""

import socket
import threading
import time

from entourage.serve.start import server_of


class Running:
    """An application behind a real port."""

    def __init__(self, app) -> None:
        bound = socket.create_server(("127.0.0.1", 0))
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        self._server = server_of(app)
        self._thread = threading.Thread(target=lambda: self._server.run(sockets=[bound]))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
