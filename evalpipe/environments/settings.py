"""What this machine's builds are told about the network, to each tool in the form that it reads.

All of it is the environment of the steps and files that no image keeps; see `BuildContainer`.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from evalpipe.environments import java_settings
from evalpipe.environments.build import SETTINGS_FOLDER, BuildSettings

BUNDLE_FILE = "ca-certificates.crt"
CARGO_FOLDER = "/work/.cargo"
"""Cargo reads settings in the folders above a project, and a crate registry can be replaced in no variable."""

_TRUST_VARIABLES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "YARN_HTTPS_CA_FILE_PATH",
    "CARGO_HTTP_CAINFO",
)


@dataclass(frozen=True, slots=True)
class Network:
    """How builds reach package registries.

    `certificates` is a bundle in PEM; `mirrors` are URLs by `pypi`, `npm`, `go`, `crates` and `maven`, which may hold
    a login; `passed` are variables that tools read as they are; `secrets` are texts that no log may show.
    """

    certificates: bytes | None = None
    proxy: str | None = None
    no_proxy: str | None = None
    mirrors: Mapping[str, str] = field(default_factory=dict)
    passed: Mapping[str, str] = field(default_factory=dict)
    secrets: Iterable[str] = ()


def build_settings(network: Network) -> BuildSettings:
    """The settings of builds for every tool that a template may use."""
    env = dict(network.passed)
    files: dict[str, bytes] = {}
    if network.certificates is not None:
        files[BUNDLE_FILE] = network.certificates
        bundle = f"{SETTINGS_FOLDER}/{BUNDLE_FILE}"
        env |= dict.fromkeys(_TRUST_VARIABLES, bundle)
        files["apt.conf"] = f'Acquire::https::CaInfo "{bundle}";\n'.encode()
        env["APT_CONFIG"] = f"{SETTINGS_FOLDER}/apt.conf"
    if network.proxy is not None:
        env |= _proxy_variables(network.proxy, network.no_proxy)
        env["JAVA_TOOL_OPTIONS"] = java_settings.proxy_options(network.proxy, network.no_proxy)
    env |= _mirror_variables(network.mirrors)
    secrets = set(network.secrets)
    if "npm" in network.mirrors:
        files["home/.npmrc"] = _npmrc(network.mirrors["npm"]).encode()
        secrets.add(_basic(split_login(network.mirrors["npm"])[1]))
    if "crates" in network.mirrors:
        files["cargo/config.toml"] = _cargo_config(network.mirrors["crates"]).encode()
    maven = network.mirrors.get("maven")
    if maven is not None or network.proxy is not None:
        files["home/.m2/settings.xml"] = java_settings.maven_settings(maven, network.proxy, network.no_proxy)
    if maven is not None:
        files["mirror.gradle"] = java_settings.gradle_script(maven)
        env["EVALPIPE_GRADLE_INIT"] = f"{SETTINGS_FOLDER}/mirror.gradle"
    links = {CARGO_FOLDER: "cargo"} if "crates" in network.mirrors else {}
    return BuildSettings(env, files, tuple(_spellings(secrets)), links)


def _proxy_variables(proxy: str, no_proxy: str | None) -> dict[str, str]:
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY")
    excepted = dict.fromkeys(("NO_PROXY", "no_proxy"), no_proxy) if no_proxy else {}
    return {**dict.fromkeys(names, proxy), **excepted}


def _mirror_variables(mirrors: Mapping[str, str]) -> dict[str, str]:
    env: dict[str, str] = {}
    if "pypi" in mirrors:
        env |= dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"), mirrors["pypi"])
    if "go" in mirrors:
        env["GOPROXY"] = mirrors["go"]
    if "npm" in mirrors:
        url, login = split_login(mirrors["npm"])
        env |= dict.fromkeys(("npm_config_registry", "YARN_NPM_REGISTRY_SERVER", "COREPACK_NPM_REGISTRY"), url)
        if login:
            env |= {"YARN_NPM_AUTH_IDENT": ":".join(login), "YARN_NPM_ALWAYS_AUTH": "true"}
    return env


def _npmrc(mirror: str) -> str:
    """For npm, pnpm and Yarn 1: https://docs.npmjs.com/cli/configuring-npm/npmrc#auth-related-configuration"""
    url, login = split_login(mirror)
    lines = [f"registry={url}"]
    if login:
        place = url.partition(":")[2].rstrip("/")
        lines.append(f"{place}/:_auth={_basic(login)}")
    return "\n".join([*lines, ""])


def _basic(login: Sequence[str]) -> str:
    """Credentials of the Basic scheme: https://www.rfc-editor.org/rfc/rfc7617#section-2"""
    return base64.b64encode(":".join(login).encode()).decode()


def _cargo_config(mirror: str) -> str:
    """https://doc.rust-lang.org/cargo/reference/source-replacement.html"""
    url, _ = split_login(mirror)
    place = url if url.startswith("sparse+") else f"sparse+{url.rstrip('/')}/"
    return f'[source.crates-io]\nreplace-with = "mirror"\n\n[source.mirror]\nregistry = "{place}"\n'


def split_login(url: str) -> tuple[str, Sequence[str]]:
    """A URL without its login, and user and password as they are meant; nothing where there is no login."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, ()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return bare, (unquote(parts.username), unquote(parts.password or ""))


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Each secret as it may stand in a log: as it is, quoted for a URL, and the other way."""
    return sorted({form for secret in secrets for form in (secret, quote(secret, safe=""), unquote(secret)) if form})
