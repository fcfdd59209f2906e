"""What each tool is told of the network, in the form that it reads, and what may not stand in a log."""

from __future__ import annotations

import base64
import tomllib
import xml.etree.ElementTree as ET

import pytest

from evalpipe.environments.java_settings import gradle_script, maven_settings, non_proxy_hosts, proxy_options
from evalpipe.environments.settings import Network, build_settings

PROXY = "http://us%40er:p%26ss@proxy.example:3128"
MIRRORS = {
    "pypi": "https://reader:s3cret@host/simple",
    "npm": "https://reader:s3cret@host/npm/",
    "go": "https://reader:s3cret@host/go,direct",
    "crates": "https://host/crates",
    "maven": "https://reader:s%3Ccret@host/maven",
}


def test_a_machine_without_settings_adds_nothing() -> None:
    settings = build_settings(Network())
    assert (settings.env, settings.files, settings.secrets, settings.links) == ({}, {}, (), {})


def test_every_tool_trusts_the_bundle() -> None:
    settings = build_settings(Network(certificates=b"PEM"))
    assert settings.files["ca-certificates.crt"] == b"PEM"
    place = "/run/evalpipe/ca-certificates.crt"
    for variable in ("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "CARGO_HTTP_CAINFO"):
        assert settings.env[variable] == place
    assert settings.env["APT_CONFIG"] == "/run/evalpipe/apt.conf"
    assert settings.files["apt.conf"] == f'Acquire::https::CaInfo "{place}";\n'.encode()


def test_every_tool_gets_the_proxy() -> None:
    settings = build_settings(Network(proxy=PROXY, no_proxy=".corp.example,localhost"))
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "YARN_HTTPS_PROXY"):
        assert settings.env[variable] == PROXY
    assert settings.env["NO_PROXY"] == settings.env["no_proxy"] == ".corp.example,localhost"
    assert settings.env["JAVA_TOOL_OPTIONS"] == proxy_options(PROXY, ".corp.example,localhost")
    proxies = ET.fromstring(settings.files["home/.m2/settings.xml"]).findall("proxies/proxy")
    assert [(one.findtext("protocol"), one.findtext("host"), one.findtext("port")) for one in proxies] == [
        ("http", "proxy.example", "3128"),
        ("https", "proxy.example", "3128"),
    ]
    assert (proxies[0].findtext("username"), proxies[0].findtext("password")) == ("us@er", "p&ss")
    assert proxies[0].findtext("nonProxyHosts") == "*.corp.example|localhost"


def test_java_gets_the_proxy_with_its_default_port_and_without_a_login() -> None:
    assert proxy_options("http://proxy", None) == (
        "-Dhttp.proxyHost=proxy -Dhttp.proxyPort=80 -Dhttps.proxyHost=proxy -Dhttps.proxyPort=80"
    )
    assert non_proxy_hosts(" a , .b,, 10.0.0.1") == "a|*.b|10.0.0.1"


def test_every_tool_gets_its_mirror_and_login() -> None:
    settings = build_settings(Network(mirrors=MIRRORS, secrets=("s3cret",)))
    env = settings.env
    assert env["PIP_INDEX_URL"] == env["UV_DEFAULT_INDEX"] == MIRRORS["pypi"]
    assert env["GOPROXY"] == MIRRORS["go"]
    assert env["npm_config_registry"] == env["YARN_NPM_REGISTRY_SERVER"] == "https://host/npm/"
    assert env["YARN_NPM_AUTH_IDENT"] == "reader:s3cret"
    login = base64.b64encode(b"reader:s3cret").decode()
    assert settings.files["home/.npmrc"].decode().splitlines() == [
        "registry=https://host/npm/",
        f"//host/npm/:_auth={login}",
    ]
    assert login in settings.secrets
    cargo = tomllib.loads(settings.files["cargo/config.toml"].decode())
    assert cargo["source"]["crates-io"]["replace-with"] == "mirror"
    assert cargo["source"]["mirror"]["registry"] == "sparse+https://host/crates/"
    assert settings.links == {"/work/.cargo": "cargo"}
    maven = ET.fromstring(settings.files["home/.m2/settings.xml"])
    assert maven.findtext("mirrors/mirror/url") == "https://host/maven"
    assert maven.findtext("mirrors/mirror/mirrorOf") == "*"
    assert maven.findtext("servers/server/password") == "s<cret"
    assert env["EVALPIPE_GRADLE_INIT"] == "/run/evalpipe/mirror.gradle"
    assert b"'https://host/maven'" in settings.files["mirror.gradle"]
    assert b"password = 's<cret'" in settings.files["mirror.gradle"]


def test_mirror_without_a_login_needs_none() -> None:
    settings = build_settings(Network(mirrors={"npm": "https://host/npm", "maven": "http://host/maven"}))
    assert settings.files["home/.npmrc"] == b"registry=https://host/npm\n"
    assert "YARN_NPM_AUTH_IDENT" not in settings.env
    assert b"server" not in settings.files["home/.m2/settings.xml"]
    assert b"credentials" not in settings.files["mirror.gradle"]
    assert b"allowInsecureProtocol" in settings.files["mirror.gradle"]


def test_settings_of_maven_are_empty_without_anything_to_say() -> None:
    assert ET.fromstring(maven_settings(None, None, None)).tag == "settings"


def test_secrets_are_masked_in_every_spelling() -> None:
    settings = build_settings(Network(proxy=PROXY, secrets=("p%26ss", "")))
    assert settings.masked("p%26ss and p&ss and p%2526ss") == "*** and *** and ***"


@pytest.mark.parametrize("mirror", ["https://host/maven", "http://it's:a\\b@host/maven"])
def test_script_of_gradle_is_whole(mirror: str) -> None:
    text = gradle_script(mirror).decode()
    assert text.count("{") == text.count("}")
    assert text.count("'") % 2 == text.count("\\'") % 2
