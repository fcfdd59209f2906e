"""An index of Python packages on loopback, and a proxy before it; both ask for a password, and write down who came."""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PACKAGE, VERSION = "evalpipe-mirrored", "4.7"
_WHEEL = f"evalpipe_mirrored-{VERSION}-py3-none-any.whl"


@dataclass
class PackageIndex:
    """Serves one wheel that no public index has, as a mirror or as what a proxy fetches."""

    user: str
    password: str
    port: int = 0
    asked: list[str] = field(default_factory=list)
    """Paths that were served, of a proxy whole URLs."""
    refused: list[str] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        as_proxy = handler.path.startswith("http://")
        header = "Proxy-Authorization" if as_proxy else "Authorization"
        wanted = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if handler.headers.get(header) != f"Basic {wanted}":
            self.refused.append(handler.path)
            handler.send_response(407 if as_proxy else 401)
            handler.send_header("Proxy-Authenticate" if as_proxy else "WWW-Authenticate", 'Basic realm="x"')
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        self.asked.append(handler.path)
        path, wheel = urlsplit(handler.path).path, _wheel()
        page = f'<a href="/files/{_WHEEL}#sha256={hashlib.sha256(wheel).hexdigest()}">{_WHEEL}</a>'.encode()
        found = {f"/simple/{PACKAGE}/": (page, "text/html"), f"/files/{_WHEEL}": (wheel, "application/zip")}.get(path)
        content, kind = found or (b"", "text/plain")
        handler.send_response(200 if found else 404)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def serving(user: str, password: str) -> Iterator[PackageIndex]:
    """An index on a free port of loopback."""
    index = PackageIndex(user, password)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.answer(self)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()


def _wheel() -> bytes:
    info = f"evalpipe_mirrored-{VERSION}.dist-info"
    files = {
        "evalpipe_mirrored.py": "ANSWER = 47\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()
