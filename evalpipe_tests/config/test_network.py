"""What the builds of a machine are told of the network, and that no secret is shown or committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.config import ConfigError, MachineNetwork, Workspace, machine_network
from evalpipe_tests.config.builders import make_workspace

FILE = """certificates: own/ca.pem
proxy: http://builder:${PROXY_PASSWORD}@proxy.corp.example:3128
no_proxy: [.corp.example, localhost]
mirrors:
  pypi: https://${TOKEN}@packages.corp.example/pypi/simple
  npm: https://packages.corp.example/npm
  go: https://packages.corp.example/go,direct
  crates: https://packages.corp.example/crates
  maven: https://reader:${TOKEN}@packages.corp.example/maven
"""
SECRETS = {"PROXY_PASSWORD": "pr@xy", "TOKEN": "tok-123"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path)


def _network(workspace: Workspace, text: str, variables: dict[str, str]) -> MachineNetwork:
    (workspace.data / "network.yaml").write_text(text)
    return machine_network(workspace, variables)


def _problems(workspace: Workspace, text: str, variables: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        _network(workspace, text, variables or {})
    return [str(problem) for problem in caught.value.problems]


def test_a_machine_that_says_nothing_passes_nothing(workspace: Workspace) -> None:
    assert machine_network(workspace, {"PATH": "/bin", "HOME": "/root"}) == MachineNetwork()
    assert machine_network(None, {}) == MachineNetwork()


def test_the_file_takes_secrets_from_the_environment_and_shows_none(workspace: Workspace) -> None:
    bundle = workspace.root / "own" / "ca.pem"
    bundle.parent.mkdir()
    bundle.touch()
    found = _network(workspace, FILE, SECRETS)
    assert found.certificates is not None
    assert found.certificates.value == str(bundle)
    assert found.proxy is not None
    assert found.proxy.value == "http://builder:pr@xy@proxy.corp.example:3128"
    assert found.no_proxy is not None
    assert found.no_proxy.value == ".corp.example,localhost"
    assert found.mirrors["maven"].value == "https://reader:tok-123@packages.corp.example/maven"
    assert list(found.mirrors) == ["pypi", "npm", "go", "crates", "maven"]
    assert found.shown(found.proxy) == "http://builder:***@proxy.corp.example:3128 (proxy in data/network.yaml)"
    assert not [one for one in found.mirrors.values() if "tok-123" in found.shown(one)]


def test_variables_of_the_tools_stand_where_the_file_says_nothing(workspace: Workspace, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.crt"
    bundle.touch()
    variables = {
        "SSL_CERT_FILE": str(tmp_path / "gone.crt"),
        "PIP_CERT": str(bundle),
        "https_proxy": "http://user:hunter2@proxy:3128",
        "NO_PROXY": "localhost",
        "UV_DEFAULT_INDEX": "https://token9@index/simple",
        "NPM_CONFIG_REGISTRY": "https://npm/",
        "GOPROXY": "https://a:goproxy-pw@one|https://two,direct",
        "GONOSUMDB": "corp.example/*",
        "UV_INDEX_CORP_PASSWORD": "uv-pw",
        "CARGO_REGISTRIES_CORP_TOKEN": "cargo-token",
        "CARGO_HTTP_CAINFO": "/host/only",
        "PIP_FIND_LINKS": "/host/only",
        "AWS_SECRET_ACCESS_KEY": "never",
    }
    found = machine_network(workspace, variables)
    assert found.certificates is not None
    assert found.shown(found.certificates) == f"{bundle} (PIP_CERT)"
    assert found.proxy is not None
    assert found.shown(found.proxy) == "http://user:***@proxy:3128 (https_proxy)"
    assert {name: mirror.origin for name, mirror in found.mirrors.items()} == {
        "pypi": "UV_DEFAULT_INDEX",
        "npm": "NPM_CONFIG_REGISTRY",
        "go": "GOPROXY",
    }
    assert found.passed == {
        "CARGO_REGISTRIES_CORP_TOKEN": "cargo-token",
        "GONOSUMDB": "corp.example/*",
        "UV_INDEX_CORP_PASSWORD": "uv-pw",
    }
    assert found.secrets == {"hunter2", "token9", "goproxy-pw", "uv-pw", "cargo-token"}
    (workspace.data / "network.yaml").write_text("proxy: http://other:1\n")
    other = machine_network(workspace, variables)
    assert (other.proxy.value if other.proxy else None, other.mirrors) == ("http://other:1", found.mirrors)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("proxy: proxy:3128\n", "data/network.yaml:1: proxy: is not a URL; write it as https://host/path"),
        (
            "mirrors:\n  pypi: https://user:secret@host/simple\n",
            "data/network.yaml:2: mirrors.pypi: holds a password; write it as ${VARIABLE}, which takes it from the "
            "environment",
        ),
        ("proxy: http://a:${GONE}@host\n", "data/network.yaml: proxy: the environment variable GONE is not set"),
        ("mirrors:\n  crates: https://${T}@host/\n", "data/network.yaml:2: mirrors.crates: holds a login, and Cargo"),
        ("certificates: nowhere.pem\n", "data/network.yaml: certificates: there is no file"),
        ("mirror:\n  pypi: https://x/\n", "data/network.yaml:1: mirror: unknown field; did you mean 'mirrors'?"),
        ("mirrors:\n  cargo: https://x/\n", "data/network.yaml:2: mirrors.cargo: unknown field"),
    ],
)
def test_a_wrong_file_is_told_with_what_would_be_right(workspace: Workspace, text: str, problem: str) -> None:
    (found,) = _problems(workspace, text)
    assert found.startswith(problem)
    assert "secret" not in found
