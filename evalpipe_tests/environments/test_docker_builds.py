"""Real builds on a real engine; what is built runs as a box does: user 1000, no network, read-only but /work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from evalpipe.environments import (
    BuildStatus,
    BuiltEnvironment,
    DockerEnvironmentBuilder,
    EnvironmentDefinition,
)
from evalpipe.sandbox import DockerSandbox, EngineUnavailable, FileEntry, Limits, Outcome

pytestmark = [pytest.mark.docker, pytest.mark.slow]

LIMITS = Limits(timeout_s=60, memory_bytes=512 * 1024**2, pids=64)


@pytest.fixture(scope="module")
def builder(docker_sandbox: DockerSandbox) -> Iterator[DockerEnvironmentBuilder]:
    """A builder of an instance of its own; its images are removed at the end."""
    instance = f"test-builds-{os.getpid()}"
    client = docker_sandbox.client
    yield DockerEnvironmentBuilder(client, instance)
    for image in client.images.list(filters={"label": f"evalpipe.instance={instance}"}):
        client.images.remove(str(image.id), force=True)


@pytest.fixture(scope="module")
def built(builder: DockerEnvironmentBuilder, base_image: str) -> BuiltEnvironment:
    """An image with one pinned package from the index, and two setup commands."""
    definition = EnvironmentDefinition(
        sandbox="docker",
        base=base_image,
        packages=("iniconfig==2.0.0",),
        setup=("id -u > /opt/who\ncat > /opt/text <<'END'\n$HOME \"quoted\"\nEND", "printf second >> /opt/who"),
    )
    found = builder.build(definition)
    assert found.status is BuildStatus.BUILT, found.log_tail
    return found


def run(sandbox: DockerSandbox, image: str | None, script: str) -> Outcome:
    assert image is not None
    with sandbox.open(image, LIMITS, {}) as box:
        box.put([FileEntry(b"repo/file", 0o100644, b"1\n")])
        return box.run(["sh", "-c", script], env={}, cwd="/work/repo")


def test_base_alone_is_an_environment(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    found = builder.build(EnvironmentDefinition(sandbox="docker", base=base_image))
    assert found.status is BuildStatus.BUILT
    assert found.base_digest == base_image
    assert found.image_digest is not None
    assert found.image_digest.startswith("sha256:")
    assert builder.exists(found.image_digest)
    outcome = run(
        docker_sandbox, found.image_digest, "id -u; pwd; echo x > new && cat new; python3 -m pytest --version"
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.split()[:3] == [b"1000", b"/work/repo", b"x"]


def test_package_and_setup_are_in_the_image(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    script = (
        "python3 -c 'import iniconfig, importlib.metadata as m; print(m.version(\"iniconfig\"))'; "
        "cat /opt/who /opt/text; python3 -m pytest --version"
    )
    outcome = run(docker_sandbox, built.image_digest, script)
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith(b'2.0.0\n0\nsecond$HOME "quoted"\n')


def test_second_build_finds_the_first_and_gives_the_same_image(
    builder: DockerEnvironmentBuilder, base_image: str, built: BuiltEnvironment
) -> None:
    definition = EnvironmentDefinition(
        sandbox="docker",
        base=base_image,
        packages=("iniconfig==2.0.0",),
        setup=("id -u > /opt/who\ncat > /opt/text <<'END'\n$HOME \"quoted\"\nEND", "printf second >> /opt/who"),
    )
    again = builder.build(definition)
    assert (again.image_digest, again.build_key) == (built.image_digest, built.build_key)
    assert again.seconds < 5


def test_image_has_no_network_and_no_rights_at_run(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    script = (
        "cat /proc/net/dev | tail -n +3 | cut -d: -f1; "
        "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 443), 2)' 2>/dev/null && echo connected; "
        "touch /opt/evalpipe/x 2>/dev/null && echo wrote; "
        "python3 -m pip install --quiet six 2>/dev/null && echo installed; true"
    )
    outcome = run(docker_sandbox, built.image_digest, script)
    assert outcome.stdout.split() == [b"lo"]


def test_nothing_of_the_build_is_left_in_the_environment(
    docker_sandbox: DockerSandbox, built: BuiltEnvironment
) -> None:
    client = docker_sandbox.client
    assert built.image_digest is not None
    config = client.images.get(built.image_digest).attrs["Config"]
    names = {entry.partition("=")[0] for entry in config["Env"]}
    assert not names & {"SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_INDEX_URL"}
    assert config["User"] == "1000:1000"
    assert config["WorkingDir"] == "/work"
    outcome = run(docker_sandbox, built.image_digest, "env | cut -d= -f1 | sort; ls -ld /work | cut -c1-10")
    assert b"CERT" not in outcome.stdout


def test_root_leaves_nothing_in_the_way_of_the_user(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    outcome = run(docker_sandbox, built.image_digest, "find /work /opt/evalpipe ! -readable; touch /work/top /tmp/x")
    assert (outcome.exit_code, outcome.stdout) == (0, b"")


def test_failing_setup_is_a_status_with_the_end_of_its_log(builder: DockerEnvironmentBuilder, base_image: str) -> None:
    # The engine carries the two streams apart: without the pause their order is anybody's guess.
    setup = ("for n in $(seq 1 100); do echo line $n; done\nsleep 1\necho the cause >&2\nfalse\necho never",)
    found = builder.build(EnvironmentDefinition(sandbox="docker", base=base_image, setup=setup))
    assert found.status is BuildStatus.FAILED
    assert found.image_digest is None
    lines = found.log_tail.splitlines()
    assert len(lines) <= 40
    assert "line 100" in lines
    assert "the cause" in lines
    assert "line 1" not in lines
    assert "never" not in lines
    assert "returned a non-zero code" in lines[-1]


def test_failing_package_is_a_status_that_names_it(builder: DockerEnvironmentBuilder, base_image: str) -> None:
    packages = ("iniconfig==0.0.0.dev1",)
    found = builder.build(EnvironmentDefinition(sandbox="docker", base=base_image, packages=packages))
    assert found.status is BuildStatus.FAILED
    assert "iniconfig==0.0.0.dev1" in found.log_tail


def test_failed_build_leaves_no_container(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    mark = f"mark-{os.getpid()}"
    builder.build(EnvironmentDefinition(sandbox="docker", base=base_image, setup=(f"echo {mark}; false",)))
    containers = docker_sandbox.client.containers.list(all=True, ignore_removed=True)
    assert not [each for each in containers if mark in str(each.attrs["Config"]["Cmd"])]


@pytest.mark.parametrize("field", ["base", "image"])
def test_missing_image_is_named_with_what_to_do(builder: DockerEnvironmentBuilder, field: str) -> None:
    missing = "registry.invalid/evalpipe-test:none"
    base, image = (missing, None) if field == "base" else ("x", missing)
    found = builder.build(EnvironmentDefinition(sandbox="docker", base=base, image=image))
    assert found.status is BuildStatus.BASE_MISSING
    assert found.image_digest is None
    assert missing in found.log_tail
    assert "EVALPIPE_BASE_IMAGE" in found.log_tail


def test_finished_image_is_taken_as_it_is(builder: DockerEnvironmentBuilder, base_image: str) -> None:
    found = builder.build(EnvironmentDefinition(sandbox="docker", base="unused", image=base_image))
    assert (found.status, found.image_digest, found.definition) == (BuildStatus.BUILT, base_image, "")


def test_image_that_is_gone_does_not_exist(builder: DockerEnvironmentBuilder) -> None:
    assert not builder.exists("sha256:" + "0" * 64)


def test_dead_engine_is_no_missing_image(tmp_path: Path) -> None:
    client = docker.DockerClient(base_url=f"unix://{tmp_path}/none.sock", version="1.41")
    builder = DockerEnvironmentBuilder(client, "test")
    with pytest.raises(EngineUnavailable):
        builder.build(EnvironmentDefinition(sandbox="docker", base="x"))
    with pytest.raises(EngineUnavailable):
        builder.exists("x")
