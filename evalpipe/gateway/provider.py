"""A provider as it is configured: its host, its wire forms, and the variable that holds its key."""

import os
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from evalpipe.gateway.wire import QUERY, WireForm


class ProviderError(Exception):
    """A provider cannot be used as it is configured; the text names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where calls of a model go.

    `base_url` is what stands before the wire form's own path: `https://api.example.com` for calls to
    `https://api.example.com/v1/messages`. `key_variable` names the environment variable that holds the real key; None
    for a server that asks for none. `price_list` is the provider's name in genai-prices; None leaves cost open.
    `concurrency` is the most attempts that use the provider at one time.
    """

    name: str
    base_url: str
    forms: frozenset[WireForm]
    key_variable: str | None = None
    price_list: str | None = None
    concurrency: int = 4

    def __post_init__(self) -> None:
        url = URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host or url.user or url.query_string or url.fragment:
            raise ProviderError(f"{self.name}: base_url must be http(s)://host[:port][/path], not {self.base_url}")
        if not self.forms:
            raise ProviderError(f"{self.name}: name at least one wire form")
        if self.concurrency < 1:
            raise ProviderError(f"{self.name}: concurrency must be 1 or more")

    def key(self) -> str | None:
        """The real key, from the environment. Raises ProviderError when its variable is not set."""
        if self.key_variable is None:
            return None
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ProviderError(f"{self.name}: set {self.key_variable} to the provider's key, then run the same again")
        return key

    def proxy(self) -> str | None:
        """The proxy that this machine's environment (`https_proxy`, `no_proxy`, …) names for the provider."""
        url = URL(self.base_url)
        if url.host is None or proxy_bypass(url.host):
            return None
        return getproxies().get(url.scheme)

    def url(self, raw_path: str, query: dict[str, str]) -> URL:
        """Where a request for the route `raw_path` goes; only known parameters go with it."""
        base = URL(self.base_url, encoded=True)
        kept = {name: value for name, value in query.items() if name in QUERY}
        return base.with_path(base.raw_path.rstrip("/") + raw_path, encoded=True).with_query(kept)
