"""The gateway: a thread with an event loop, and for each open attempt a Unix socket and a key of its own."""

import asyncio
import fcntl
import functools
import shutil
import ssl
import tempfile
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

from evalpipe.gateway.attempt import AttemptState, Caps, Progress
from evalpipe.gateway.concurrency import ProviderPlaces
from evalpipe.gateway.evidence import Evidence
from evalpipe.gateway.prices import is_priced
from evalpipe.gateway.provider import Provider, ProviderError
from evalpipe.gateway.proxy import handle
from evalpipe.gateway.recording import Recording

SOCKET_NAME = "model.sock"
_FOLDER_PREFIX, _HOLD, _PLACES = "evalpipe-gateway-", "held", "places"
_CONNECT_S, _SILENCE_S = 30.0, 900.0
_Result = TypeVar("_Result")


@dataclass(slots=True)
class OpenAttempt:
    """An attempt that may call its model.

    `socket` is on this host and accepts connections of any user: its folder holds nothing else, and can be mounted
    into a container. `key` is what the agent shows in place of a real one; it is worth nothing after `close`.
    """

    socket: Path
    key: str
    _gateway: "Gateway"
    _state: AttemptState
    _server: web.Server
    _listener: asyncio.Server
    _evidence: Evidence | None = None

    def progress(self) -> Progress:
        """What the attempt has used until now; from any thread."""
        return self._state.progress()

    def close(self) -> Evidence:
        """Revoke the key, end what is under way, and say what was seen. May be called again."""
        if self._evidence is None:
            self._evidence = self._gateway._close(self)
        return self._evidence

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Gateway:
    """Stands between agents and their models. A context manager; its methods may be called from any thread.

    `silence_s`: seconds without a byte after which a provider is given up. `extra_secrets`: values that are redacted
    from recorded bodies, beside the providers' keys. `places`: a folder in which all gateways that are given it share
    the places of a provider, and what its rate limits leave of them; without one, each has its own.
    """

    def __init__(
        self,
        providers: Iterable[Provider],
        *,
        records_bodies: bool = False,
        extra_secrets: Iterable[str] = (),
        silence_s: float = _SILENCE_S,
        places: Path | None = None,
    ) -> None:
        self._providers = {provider.name: provider for provider in providers}
        self._records_bodies, self._extra_secrets = records_bodies, tuple(extra_secrets)
        self._silence_s, self._places = silence_s, places
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="evalpipe-gateway", daemon=True)
        self._places_of: dict[str, ProviderPlaces]
        self._session: ClientSession
        self._folder: Path
        self._hold: BinaryIO

    def __enter__(self) -> Self:
        self._folder, self._hold = _make_folder()
        places = self._places or self._folder / _PLACES
        self._places_of = {
            name: ProviderPlaces(places / name, provider.concurrency) for name, provider in self._providers.items()
        }
        for provider in self._providers.values():
            is_priced(
                provider.price_list, "", _now()
            )  # The first look reads the whole table: no call is to wait for it.
        self._thread.start()
        self._session = self._await(self._start_session())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._await(self._session.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._hold.close()

    @contextmanager
    def slot(self, provider: str) -> Iterator[None]:
        """Wait for a place among the attempts that use `provider` at one time, and hold it for one attempt."""
        with self._places_of[provider].slot():
            yield

    def concurrency(self, provider: str) -> int:
        """How many attempts may use `provider` at one time now."""
        return self._places_of[provider].limit

    def require_price(self, provider: str, model: str) -> None:
        """Raise ProviderError when the calls of `model` cannot be priced, so that no limit of cost could be held."""
        prices = self._providers[provider].price_list
        if not is_priced(prices, model, _now()):
            raise ProviderError(
                f"the price of model {model} is not known to genai-prices (list {prices}),"
                " so a limit of cost cannot be held: limit calls or tokens instead"
            )

    def open_attempt(
        self,
        attempt_id: str,
        provider: str,
        *,
        model: str | None = None,
        caps: Caps = Caps(),  # noqa: B008 - frozen
        folder: Path | None = None,
        replay: Path | None = None,
    ) -> OpenAttempt:
        """Open a socket and a key for one attempt.

        `folder` receives `calls.jsonl`, line by line, and the bodies where they are recorded; it is made if need be.
        `replay` is such a folder of an earlier attempt: its replies are given again and no provider is asked.

        Raises ProviderError when the provider is not configured, its key is missing, or the attempt has a limit of
        cost and `model` has no known price; OSError when the folders cannot be used.
        """
        if provider not in self._providers:
            raise ProviderError(f"no provider is called {provider}: there are {', '.join(sorted(self._providers))}")
        settings = self._providers[provider]
        if caps.cost_usd is not None and model is not None:
            self.require_price(provider, model)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        key = settings.key() if replay is None else None
        state = AttemptState(
            attempt_id=attempt_id,
            provider=settings,
            key=key,
            caps=caps,
            folder=folder,
            records_bodies=self._records_bodies,
            recording=None if replay is None else Recording(replay),
            secrets=(*self._extra_secrets, *([key] if key else [])),
            places=self._places_of[provider],
            proxy=settings.proxy(),
        )
        return self._await(self._listen(state))

    def _close(self, attempt: OpenAttempt) -> Evidence:
        self._await(self._stop(attempt))
        return attempt._state.evidence()

    async def _start_session(self) -> ClientSession:
        return ClientSession(
            connector=TCPConnector(limit=0, ssl=ssl.create_default_context()),
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._silence_s),
            auto_decompress=False,
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Content-Type", "Accept"),
        )

    async def _listen(self, state: AttemptState) -> OpenAttempt:
        folder = Path(tempfile.mkdtemp(prefix="a", dir=self._folder))
        folder.chmod(0o755)
        server = web.Server(
            functools.partial(handle, attempt=state, session=self._session),
            handler_cancellation=True,
            access_log=None,
        )
        listener = await self._loop.create_unix_server(server, str(folder / SOCKET_NAME))
        (folder / SOCKET_NAME).chmod(0o666)
        return OpenAttempt(folder / SOCKET_NAME, state.placeholder, self, state, server, listener)

    async def _stop(self, attempt: OpenAttempt) -> None:
        attempt._listener.close()
        await attempt._server.shutdown(timeout=0)
        # Its folder stays: an engine reads nothing from a container, the work included, once a mounted folder is gone.
        attempt.socket.unlink(missing_ok=True)

    def _await(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _make_folder() -> tuple[Path, BinaryIO]:
    """A folder for sockets, and what holds it; folders that nobody holds, since their process was killed, are removed.

    A socket's path has 108 bytes at most, so it is not kept in the workspace.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError), (folder / _HOLD).open("rb") as hold:
            fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
    held = (made / _HOLD).open("wb")
    fcntl.flock(held, fcntl.LOCK_EX)
    return made, held


def _now() -> datetime:
    return datetime.now(UTC)
