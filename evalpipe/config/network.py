"""`data/network.yaml` and what the machine's environment says of the network: authority, proxy, package mirrors.

Both are for the builds of images alone: what runs in a finished image has no network.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError

from evalpipe.config.explain import explain
from evalpipe.config.problems import ConfigError, Problem
from evalpipe.config.values import ConfigModel, Text, wrong
from evalpipe.config.workspace import Workspace
from evalpipe.config.yaml_files import read_yaml

BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)
_PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_NO_PROXY_VARIABLES = ("NO_PROXY", "no_proxy")
_MIRROR_VARIABLES = {
    "pypi": ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "npm": ("NPM_CONFIG_REGISTRY", "npm_config_registry", "YARN_NPM_REGISTRY_SERVER"),
    "go": ("GOPROXY",),
}
# What tools read besides, and what has one form only.
_PASSED = re.compile(
    r"PIP_(?:EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)"
    r"|UV_(?:INDEX|EXTRA_INDEX_URL|INSECURE_HOST|HTTP_TIMEOUT|INDEX_\w+_(?:USERNAME|PASSWORD))"
    r"|GO(?:SUMDB|NOSUMDB|NOSUMCHECK|PRIVATE|NOPROXY|INSECURE|AUTH)"
    r"|CARGO_(?:HTTP_(?!CAINFO)|NET_|REGISTRY_|REGISTRIES_)\w+"
)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"(?i)password|passwd|token|secret|auth|credential|apikey|api_key")


def _check_url(value: str) -> str:
    parts = urlsplit(_VARIABLE.sub("x", value))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong("is not a URL; write it as https://host/path")
    password = urlsplit(_VARIABLE.sub("", value)).password
    if password:
        raise wrong("holds a password; write it as ${VARIABLE}, which takes it from the environment")
    return value


def _check_no_login(value: str) -> str:
    if "@" in urlsplit(value).netloc:
        raise wrong("holds a login, and Cargo takes none here; set CARGO_REGISTRIES_MIRROR_TOKEN in the environment")
    return value


Url = Annotated[Text, AfterValidator(_check_url)]
PlainUrl = Annotated[Url, AfterValidator(_check_no_login)]


class MirrorConfig(ConfigModel):
    """Where packages are fetched from instead of the public registries."""

    pypi: Url | None = Field(default=None, description="index of Python packages (the URL that ends in /simple)")
    npm: Url | None = Field(default=None, description="registry of npm, pnpm and Yarn")
    go: Text | None = Field(default=None, description="module proxies of Go, as in GOPROXY")
    crates: PlainUrl | None = Field(default=None, description="sparse registry that stands for crates.io")
    maven: Url | None = Field(default=None, description="repository that stands for all others, for Maven and Gradle")


class NetworkConfig(ConfigModel):
    """What the builds of images need to reach package registries; `${VARIABLE}` comes from the environment."""

    certificates: Path | None = Field(default=None, description="bundle of CA certificates in PEM")
    proxy: Url | None = Field(default=None, description="proxy of all requests")
    no_proxy: tuple[Text, ...] = Field(default=(), description="hosts that are reached without the proxy")
    mirrors: MirrorConfig = Field(default=MirrorConfig(), description="package registries of your own")


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and where it was found: a variable, or a field of data/network.yaml."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class MachineNetwork:
    """What the builds of this machine are told. `passed` are variables that their tools read as they are.

    `secrets` are the texts in it that nobody may see.
    """

    certificates: Found | None = None
    proxy: Found | None = None
    no_proxy: Found | None = None
    mirrors: Mapping[str, Found] = field(default_factory=dict)
    passed: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()

    def shown(self, found: Found) -> str:
        """A value for people, with its origin and without secrets."""
        text = found.value
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return f"{text} ({found.origin})"


def load_network(workspace: Workspace) -> NetworkConfig:
    """Load `data/network.yaml`; a workspace without one has the defaults. Raises ConfigError."""
    path = workspace.data / "network.yaml"
    if not path.exists():
        return NetworkConfig()
    document = read_yaml(path, workspace.shown(path))
    try:
        return NetworkConfig.model_validate(document.value)
    except ValidationError as error:
        raise ConfigError(explain(error, NetworkConfig, document)) from error


def machine_network(workspace: Workspace | None, variables: Mapping[str, str] = os.environ) -> MachineNetwork:
    """What the file of a workspace says, and for what it leaves open the environment `variables`.

    Raises ConfigError when the file is wrong, names a variable that is not set, or certificates that are not there.
    """
    config = NetworkConfig() if workspace is None else load_network(workspace)
    reader = _Reader(workspace, variables)
    certificates = reader.certificates(config.certificates)
    proxy = reader.value("proxy", config.proxy, _PROXY_VARIABLES)
    no_proxy = reader.value("no_proxy", ",".join(config.no_proxy) or None, _NO_PROXY_VARIABLES)
    mirrors = {
        name: found
        for name, written in config.mirrors
        if (found := reader.value(f"mirrors.{name}", written, _MIRROR_VARIABLES.get(name, ()))) is not None
    }
    passed = {name: value for name, value in sorted(variables.items()) if value and _PASSED.fullmatch(name)}
    if reader.problems:
        raise ConfigError(reader.problems)
    values = [found.value for found in (proxy, *mirrors.values()) if found] + list(passed.values())
    secrets = {password for value in values for password in _passwords(value)} | reader.secrets
    secrets |= {value for name, value in passed.items() if _SECRET_NAME.search(name)}
    return MachineNetwork(certificates, proxy, no_proxy, mirrors, passed, frozenset(secrets))


class _Reader:
    """Reads values of the file and of the environment; collects problems, and the secrets that it met."""

    def __init__(self, workspace: Workspace | None, variables: Mapping[str, str]) -> None:
        self._workspace, self._variables = workspace, variables
        self.problems: list[Problem] = []
        self.secrets: set[str] = set()

    def value(self, name: str, written: str | None, variables: tuple[str, ...]) -> Found | None:
        if written is not None:
            return Found(_VARIABLE.sub(lambda match: self._variable(name, match[1]), written), f"{name} in {_FILE}")
        found = next((variable for variable in variables if self._variables.get(variable)), None)
        return None if found is None else Found(self._variables[found], found)

    def certificates(self, written: Path | None) -> Found | None:
        if written is not None and self._workspace is not None:
            path = self._workspace.resolve(written)
            if not path.is_file():
                self._problem("certificates", f"there is no file {path}")
            return Found(str(path), f"certificates in {_FILE}")
        named = {variable: self._variables.get(variable) for variable in BUNDLE_VARIABLES}
        return next((Found(path, name) for name, path in named.items() if path and Path(path).is_file()), None)

    def _variable(self, name: str, variable: str) -> str:
        value = self._variables.get(variable)
        if not value:
            self._problem(name, f"the environment variable {variable} is not set; set it, or write the value out")
            return ""
        self.secrets.add(value)
        return value

    def _problem(self, name: str, message: str) -> None:
        self.problems.append(Problem(_FILE, message, None, name))


_FILE = "data/network.yaml"


def _passwords(value: str) -> list[str]:
    """The passwords of all URLs in a value, which may be a list of them."""
    found = []
    for part in re.split(r"[\s,|]+", value):
        try:
            parts = urlsplit(part)
        except ValueError:
            continue
        # A token is often given as the name of a user without a password.
        secret = parts.password or (parts.username if parts.scheme in ("http", "https") else None)
        if secret:
            found.append(secret)
    return found
