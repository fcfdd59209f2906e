from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evalpipe.environments import EnvironmentDefinition

DEFINITION = EnvironmentDefinition(
    sandbox="docker",
    base="python:3.12-slim",
    packages=("pytest==8.4.2", "o'hara>=1"),
    setup=("apt-get update", "cat > /etc/x <<'END'\nfirst \"line\"\nEND"),
)

DOCKERFILE = r"""FROM evalpipe/base:abc
USER root
COPY ca-certificates.crt /opt/evalpipe/ca-certificates.crt
RUN python3 -m venv --system-site-packages /opt/evalpipe/venv
ENV PATH=/opt/evalpipe/venv/bin:$PATH
RUN {trust} /opt/evalpipe/venv/bin/python -m pip 'install' '--no-input' '--no-cache-dir' '--disable-pip-version-check' '--quiet' '--' 'pytest==8.4.2' 'o'\''hara>=1'
RUN ["/bin/sh", "-ec", "export {trust} \napt-get update"]
RUN ["/bin/sh", "-ec", "export {trust} \ncat > /etc/x <<'END'\nfirst \"line\"\nEND"]
RUN mkdir -p /work && chmod 0777 /work
USER 1000:1000
WORKDIR /work
""".replace(  # noqa: E501
    "{trust}",
    " ".join(
        f"{name}=/opt/evalpipe/ca-certificates.crt"
        for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
    ),
)


def test_dockerfile_with_packages_setup_and_certificates() -> None:
    assert DEFINITION.dockerfile("evalpipe/base:abc", certificates=True) == DOCKERFILE


def test_dockerfile_of_nothing_but_a_base() -> None:
    definition = EnvironmentDefinition(sandbox="docker", base="x")
    assert definition.dockerfile("evalpipe/base:abc", certificates=False) == (
        "FROM evalpipe/base:abc\nUSER root\nRUN mkdir -p /work && chmod 0777 /work\nUSER 1000:1000\nWORKDIR /work\n"
    )


def test_certificates_are_trusted_by_build_steps_and_never_by_the_image() -> None:
    lines = DEFINITION.dockerfile("x", certificates=True).splitlines()
    assert [line for line in lines if line.startswith("ENV")] == ["ENV PATH=/opt/evalpipe/venv/bin:$PATH"]


def test_setup_command_reaches_the_shell_as_it_was_written() -> None:
    steps = [line for line in DEFINITION.dockerfile("x", certificates=False).splitlines() if line.startswith("RUN [")]
    assert [json.loads(line.removeprefix("RUN "))[2] for line in steps] == list(DEFINITION.setup)


def test_build_key_is_stable() -> None:
    # A new value means that every environment is built again and every validation repeated.
    assert DEFINITION.build_key("sha256:base") == "7fb0d9b249d2a496d21afd2e08bd32f8b1e2795c3a936b2450136f6cb98e0eda"


@pytest.mark.parametrize(
    "other",
    [
        replace(DEFINITION, sandbox="process"),
        replace(DEFINITION, image="x"),
        replace(DEFINITION, packages=DEFINITION.packages[:1]),
        replace(DEFINITION, packages=DEFINITION.packages[::-1]),
        replace(DEFINITION, setup=DEFINITION.setup[:1]),
        replace(DEFINITION, setup=(), packages=(*DEFINITION.packages, *DEFINITION.setup)),
    ],
)
def test_build_key_depends_on_the_definition(other: EnvironmentDefinition) -> None:
    assert other.build_key("sha256:base") != DEFINITION.build_key("sha256:base")


def test_build_key_depends_on_the_content_of_the_base_and_not_on_its_name() -> None:
    assert replace(DEFINITION, base="other:name").build_key("sha256:base") == DEFINITION.build_key("sha256:base")
    assert DEFINITION.build_key("sha256:other") != DEFINITION.build_key("sha256:base")
