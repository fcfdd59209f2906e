"""A model server that says what a script tells it, in the four wire forms, with every fault that providers have."""

import asyncio
import gzip
import json
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from evalpipe_tests.model_replies import EVENTS, PLAIN, Fail, Say, Use, error_of, wire_of


@dataclass(frozen=True)
class Drop:
    """Break the connection: before any answer, or after the first events of one."""

    mid_stream: bool = True
    politely: bool = False
    """Close the stream in order, as a proxy in between would, though its last event is missing."""


@dataclass(frozen=True)
class Silence:
    """Never answer, or stop after the first events of an answer."""

    mid_stream: bool = False


Step = Say | Use | Fail | Drop | Silence
Script = Sequence[Step] | Callable[[int, dict[str, Any]], Step]


@dataclass
class Seen:
    """A request as it arrived."""

    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class ModelServer:
    """Serves on a free port of loopback while it is open. A script's last step is repeated for ever.

    `delay_s` is how long it thinks. `piece` cuts what it sends into pieces of so many bytes.
    """

    script: Script = (Say(),)
    compress: bool = False
    delay_s: float = 0
    piece: int | None = None
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._server = web.Server(self._answer, handler_cancellation=True, access_log=None)
        self._listener = await self._loop.create_server(self._server, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._listener.close()
        await self._server.shutdown(timeout=0)

    def _step(self, document: dict[str, Any]) -> Step:
        number = len(self.seen) - 1
        return (
            self.script(number, document) if callable(self.script) else self.script[min(number, len(self.script) - 1)]
        )

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=404)
        body = await _whole(request)
        self.seen.append(Seen(request.path, request.query_string, dict(request.headers), body))
        document = _document(body)
        form = wire_of(request.path)
        step = self._step(document)
        await asyncio.sleep(self.delay_s)
        if isinstance(step, Fail):
            headers = {"Retry-After": step.retry_after} if step.retry_after else {}
            return web.Response(
                status=step.status, body=error_of(form, step), content_type="application/json", headers=headers
            )
        if isinstance(step, Silence | Drop) and not step.mid_stream:
            return await self._break(request, step)
        streams = document.get("stream") is True or "stream" in request.path
        as_list = streams and form == "gemini" and request.query.get("alt") != "sse"
        said = step if isinstance(step, Say | Use) else Say("only the first words")
        events = EVENTS[form](said, document) if streams else []
        if isinstance(step, Silence | Drop):
            events = events[:1]
        if as_list:
            sent = json.dumps([json.loads(event.partition(b"data: ")[2]) for event in events]).encode()
        else:
            sent = b"".join(events) if streams else json.dumps(PLAIN[form](said, document)).encode()
        return await self._send(
            request, step, sent, "text/event-stream" if streams and not as_list else "application/json"
        )

    async def _send(self, request: web.BaseRequest, step: Step, sent: bytes, kind: str) -> web.StreamResponse:
        headers = {"Content-Type": kind, "X-Request-Id": "req-1", "Set-Cookie": "tracked=1"}
        if self.compress and "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            engine = zlib.compressobj(wbits=31)
            cut = isinstance(step, Silence | Drop)
            sent = engine.compress(sent) + engine.flush(zlib.Z_SYNC_FLUSH if cut else zlib.Z_FINISH)
        response = web.StreamResponse(headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        size = self.piece or max(len(sent), 1)
        for at in range(0, len(sent), size):
            await response.write(sent[at : at + size])
        if isinstance(step, Silence) or (isinstance(step, Drop) and not step.politely):
            return await self._break(request, step, response)
        if isinstance(step, Say) and step.lingers:
            await asyncio.sleep(3600)
        await response.write_eof()
        return response

    async def _break(
        self, request: web.BaseRequest, step: Drop | Silence, begun: web.StreamResponse | None = None
    ) -> web.StreamResponse:
        if isinstance(step, Silence):
            await asyncio.sleep(3600)
        await asyncio.sleep(0.05)  # What was sent before is to arrive.
        if request.transport is not None:
            request.transport.abort()
        return begun or web.Response()


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _whole(request: web.BaseRequest) -> bytes:
    body = await request.read()
    return gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body
