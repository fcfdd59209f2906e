"""Carries one request of an agent to its provider and the reply back, chunk by chunk, and notes what it saw."""

import hmac
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from aiohttp import ClientError, ClientResponse, ClientSession, ServerTimeoutError, web
from multidict import CIMultiDict

from evalpipe.gateway.attempt import AttemptState
from evalpipe.gateway.evidence import Call, CallResult
from evalpipe.gateway.reading import ReplyReader
from evalpipe.gateway.recording import BodyRecorder
from evalpipe.gateway.redaction import Redactor
from evalpipe.gateway.usage import ReplyFacts
from evalpipe.gateway.wire import Route, WireForm, error_body, find_route, key_header

REQUEST_BYTES = 64 * 1024**2
ERROR_BYTES = 1024**2
"""The largest request that is carried; providers refuse less than this."""
# Of a connection and not of a message, or the gateway's own to say; keys of either side never pass.
_NOT_PASSED_ON = frozenset(
    {"host", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"}
    | {"trailer", "transfer-encoding", "upgrade", "expect", "content-length", "accept-encoding"}
    | {"authorization", "x-api-key", "x-goog-api-key", "cookie", "set-cookie", "location"}
    | {"forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"}
)


class _TooLarge(Exception):
    pass


class _AgentLeft(Exception):
    pass


@dataclass(slots=True)
class _Exchange:
    """One request under way."""

    request: web.BaseRequest
    attempt: AttemptState
    route: Route
    call: Call
    facts: ReplyFacts
    recorders: tuple[BodyRecorder, BodyRecorder] | None
    sent: web.StreamResponse | None = None
    reader: ReplyReader | None = None
    reply_bytes: int = 0

    @classmethod
    def start(cls, request: web.BaseRequest, attempt: AttemptState, route: Route) -> "_Exchange":
        call = attempt.begin(route, request.rel_url.raw_path)
        return cls(request, attempt, route, call, ReplyFacts(route.form), attempt.recorders(call))

    def note(self, **changes: object) -> None:
        self.call = replace(self.call, **changes)  # type: ignore[arg-type]

    async def request_chunks(self) -> AsyncIterator[bytes]:
        """The body that the agent sends. Raises _TooLarge."""
        size = 0
        async for chunk in self.request.content.iter_any():
            size += len(chunk)
            if size > REQUEST_BYTES:
                raise _TooLarge
            if self.recorders:
                self.recorders[0].write(chunk)
            self.attempt.touch()
            yield chunk
        self.note(request_bytes=size)

    async def begin_reply(self, status: int, headers: Mapping[str, str]) -> None:
        self.note(status=status, retry_after=headers.get("Retry-After"))
        self.sent = web.StreamResponse(status=status, headers=headers)
        with _noticing_that_it_left():
            await self.sent.prepare(self.request)

    async def pass_chunk(self, chunk: bytes) -> None:
        self.reply_bytes += len(chunk)
        self.attempt.touch()
        with _noticing_that_it_left():
            await self.begun().write(chunk)

    def record_reply(self, decoded: Iterable[bytes]) -> None:
        if self.recorders:
            for piece in decoded:
                self.recorders[1].write(piece)

    async def end_reply(self) -> web.StreamResponse:
        """Let the agent have its whole reply now, and not when that is priced and entered."""
        with _noticing_that_it_left():
            await self.begun().write_eof()
        return self.begun()

    async def say_error(self, status: int, message: str) -> web.StreamResponse:
        body = error_body(self.route.form, status, message)
        await self.begin_reply(status, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        await self.pass_chunk(body)
        self.record_reply([body])
        self.note(detail=message)
        return self.begun()

    def cut_off(self) -> web.StreamResponse:
        """End a reply that has begun so that nobody takes it for whole."""
        if self.request.transport is not None:
            self.request.transport.abort()
        return self.begun()

    def has_whole_reply(self) -> bool:
        """Whether who left now has all that it asked for: Codex leaves with the last event, before the stream ends."""
        if self.reader is not None and self.sent is not None and self.reply_bytes == self.sent.content_length:
            self.reader.finish()
        return self.facts.ended

    def close(self) -> None:
        self.note(reply_bytes=self.reply_bytes)
        for recorder in self.recorders or ():
            recorder.close()

    def begun(self) -> web.StreamResponse:
        assert self.sent is not None
        return self.sent


@contextmanager
def _noticing_that_it_left() -> Iterator[None]:
    # The same class of error would else be taken for a fault of the provider's connection.
    try:
        yield
    except ConnectionError as error:
        raise _AgentLeft from error


async def handle(request: web.BaseRequest, attempt: AttemptState, session: ClientSession) -> web.StreamResponse:
    """Answer one request of the agent of `attempt`."""
    if request.method in ("HEAD", "GET") and request.rel_url.raw_path == "/":
        return web.Response()  # Some programs look whether anybody is there.
    route = find_route(attempt.provider.forms, request.method, request.rel_url.raw_path)
    if route is None:
        where = f"{request.method} {request.rel_url.raw_path}"
        return _refuse(request, attempt, None, CallResult.REFUSED_PATH, 404, f"{where} is not open to agents")
    if not _has_key(request, attempt):
        return _refuse(request, attempt, route, CallResult.REFUSED_KEY, 401, "not the key of this attempt")
    refusal = attempt.refusal(route)
    if refusal is not None:
        return _refuse(request, attempt, route, refusal[0], 400, f"evalpipe: {refusal[1]}")
    if request.content_length is not None and request.content_length > REQUEST_BYTES:
        return _refuse(request, attempt, route, CallResult.REFUSED_SIZE, 413, f"more than {REQUEST_BYTES} bytes")
    exchange = _Exchange.start(request, attempt, route)
    result: CallResult | None = CallResult.AGENT_LEFT
    try:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        sent, result = await (_replay(exchange) if attempt.recording else _forward(exchange, session))
        return sent
    except _AgentLeft:
        return exchange.cut_off()
    finally:
        exchange.close()
        if result is CallResult.AGENT_LEFT and exchange.has_whole_reply():
            result = None
        attempt.end(exchange.call, exchange.facts, result)


async def _forward(exchange: _Exchange, session: ClientSession) -> tuple[web.StreamResponse, CallResult | None]:
    """Ask the provider. A result of None is for the reply itself to say."""
    request, provider = exchange.request, exchange.attempt.provider
    try:
        headers = _headers_out(exchange)
        data = await _body(exchange, headers)
        url = provider.url(request.rel_url.raw_path, dict(request.query))
        async with session.post(
            url, data=data, headers=headers, proxy=exchange.attempt.proxy, allow_redirects=False
        ) as reply:
            return await _pass_reply(exchange, reply)
    except _TooLarge:
        return await exchange.say_error(413, f"more than {REQUEST_BYTES} bytes"), CallResult.REFUSED_SIZE
    except (ServerTimeoutError, TimeoutError):
        if exchange.sent is not None:
            return exchange.cut_off(), CallResult.SILENT
        return await exchange.say_error(504, f"{provider.name} does not answer"), CallResult.SILENT
    except ClientError as error:
        if exchange.sent is not None:
            exchange.note(detail=f"{provider.name} ended its reply early ({type(error).__name__})")
            return exchange.cut_off(), CallResult.DROPPED
        fault = f"{provider.name} cannot be reached ({type(error).__name__})"
        return await exchange.say_error(502, fault), CallResult.PROVIDER_ERROR


async def _pass_reply(exchange: _Exchange, reply: ClientResponse) -> tuple[web.StreamResponse, CallResult | None]:
    coding, kind = reply.headers.get("Content-Encoding", ""), reply.headers.get("Content-Type", "")
    exchange.reader = reader = ReplyReader(exchange.facts, kind, coding)
    headers = CIMultiDict((name, value) for name, value in reply.headers.items() if name.lower() not in _NOT_PASSED_ON)
    if reply.status >= 400:
        return await _pass_error(exchange, reply, headers)
    if reply.content_length is not None:
        headers["Content-Length"] = str(reply.content_length)
    await exchange.begin_reply(reply.status, headers)
    async for chunk in reply.content.iter_any():
        try:
            await exchange.pass_chunk(chunk)
        finally:
            # Also what the agent did not wait for.
            exchange.record_reply(reader.feed(chunk))
    reader.finish()
    return (exchange.cut_off() if _is_cut(exchange, reader) else await exchange.end_reply()), None


async def _pass_error(
    exchange: _Exchange, reply: ClientResponse, headers: CIMultiDict[str]
) -> tuple[web.StreamResponse, CallResult | None]:
    """An error goes on as a whole and without the key, which some providers repeat in it."""
    assert exchange.reader is not None
    redactor, body = Redactor(exchange.attempt.secrets), b""
    async for chunk in reply.content.iter_any():
        body += b"".join(map(redactor.feed, exchange.reader.feed(chunk)))
        if len(body) > ERROR_BYTES:
            break
    exchange.reader.finish()
    body = (body + redactor.finish())[:ERROR_BYTES]
    headers.popall("Content-Encoding", None)
    headers["Content-Length"] = str(len(body))
    await exchange.begin_reply(reply.status, headers)
    await exchange.pass_chunk(body)
    exchange.record_reply([body])
    return exchange.begun(), None


def _is_cut(exchange: _Exchange, reader: ReplyReader) -> bool:
    """Whether a stream ended without its last event, though the connection was closed in order."""
    facts = exchange.facts
    return reader.streams and exchange.call.status == 200 and not (facts.ended or facts.unread or facts.error_type)


async def _replay(exchange: _Exchange) -> tuple[web.StreamResponse, CallResult | None]:
    assert exchange.attempt.recording is not None
    async for _ in exchange.request_chunks():
        pass
    recorded = exchange.attempt.recording.take(exchange.request.rel_url.raw_path)
    if recorded is None:
        return await exchange.say_error(400, "evalpipe: the recording has no other reply"), CallResult.REPLAY_ENDED
    kind = recorded.content_type()
    reader = ReplyReader(exchange.facts, kind, "")
    assert recorded.call.status is not None
    headers = {"Content-Type": kind}
    if recorded.call.retry_after:
        headers["Retry-After"] = recorded.call.retry_after
    await exchange.begin_reply(recorded.call.status, headers)
    for chunk in recorded.chunks():
        reader.feed(chunk)
        await exchange.pass_chunk(chunk)
        exchange.record_reply([chunk])
    reader.finish()
    return (exchange.cut_off() if recorded.is_cut_off else exchange.begun()), recorded.call.result


async def _body(exchange: _Exchange, headers: dict[str, str]) -> AsyncIterator[bytes] | bytes:
    """What is sent on: the agent's own bytes as they come, but for chat, where the report of tokens is asked for."""
    request = exchange.request
    if exchange.route.form is not WireForm.OPENAI_CHAT or "Content-Encoding" in request.headers:
        if request.content_length is not None:
            headers["Content-Length"] = str(request.content_length)
        return exchange.request_chunks()
    whole = b"".join([chunk async for chunk in exchange.request_chunks()])
    try:
        document = json.loads(whole)
    except ValueError:
        return whole
    if not isinstance(document, dict) or document.get("stream") is not True:
        return whole
    options = document.get("stream_options")
    document["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return json.dumps(document).encode()


def _headers_out(exchange: _Exchange) -> dict[str, str]:
    named = exchange.request.headers.get("Connection", "").lower().replace(" ", "").split(",")
    passed = {
        name: value
        for name, value in exchange.request.headers.items()
        if name.lower() not in _NOT_PASSED_ON and name.lower() not in named
    }
    offered = exchange.request.headers.get("Accept-Encoding", "").lower()
    passed["Accept-Encoding"] = "gzip" if "gzip" in offered else "identity"  # What the gateway can read.
    if exchange.attempt.key is not None:
        name, value = key_header(exchange.route.form, exchange.attempt.key)
        passed[name] = value
    return passed


def _has_key(request: web.BaseRequest, attempt: AttemptState) -> bool:
    bearer = request.headers.get("Authorization", "").partition(" ")[2].strip()
    shown = (request.headers.get("x-api-key"), request.headers.get("x-goog-api-key"), bearer, request.query.get("key"))
    expected = attempt.placeholder.encode()
    return any(hmac.compare_digest((key or "").encode("utf-8", "surrogateescape"), expected) for key in shown)


def _refuse(
    request: web.BaseRequest,
    attempt: AttemptState,
    route: Route | None,
    result: CallResult,
    status: int,
    message: str,
) -> web.Response:
    call = attempt.begin(route, request.rel_url.raw_path)
    attempt.end(replace(call, status=status, detail=message[:500]), None, result)
    form = route.form if route else min(attempt.provider.forms)
    return web.Response(status=status, body=error_body(form, status, message), content_type="application/json")
