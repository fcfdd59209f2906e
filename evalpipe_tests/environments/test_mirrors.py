"""Builds behind a mirror and behind a proxy that ask for a password: packages come, and nothing of it stays."""

from __future__ import annotations

import datetime as dt
import io
import json
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from evalpipe.environments import BuildStatus, BuiltEnvironment, DockerEnvironmentBuilder, Project, RecipeSource
from evalpipe.environments.build_container import build_network
from evalpipe.environments.settings import Network, build_settings
from evalpipe.environments.templates.packages import PackagesTemplate
from evalpipe.sandbox import DockerSandbox, Limits
from evalpipe.sandbox.engine import Engine
from evalpipe_tests.environments.mirror import PACKAGE, VERSION, serving
from evalpipe_tests.environments.trees import NO_TREE

pytestmark = [pytest.mark.docker, pytest.mark.slow]

SECRET = f"p@ss/{uuid.uuid4().hex}"


@contextmanager
def building(sandbox: DockerSandbox, network: Network) -> Iterator[DockerEnvironmentBuilder]:
    if build_network(Engine()) != "host":
        pytest.skip("the index is on this machine's loopback, which builds on a bridge do not reach")
    instance = f"test-mirrors-{uuid.uuid4().hex}"
    yield DockerEnvironmentBuilder(instance, build_settings(network), timeout_s=120)
    for image in sandbox.client.images.list(filters={"label": f"evalpipe.instance={instance}"}):
        sandbox.client.images.remove(str(image.id), force=True)
    sandbox.client.volumes.get(f"evalpipe-cache-{instance}").remove()


def source(base_image: str) -> RecipeSource:
    project = Project(
        NO_TREE, dt.date(2026, 1, 1), None, packages=(f"{PACKAGE}=={VERSION}",), setup=(f": {uuid.uuid4().hex}",)
    )
    return RecipeSource(base_image, PackagesTemplate().recipe(project), NO_TREE)


def has_package_and_no_secret(sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    assert built.status is BuildStatus.BUILT, built.log_tail
    assert f"{PACKAGE}=={VERSION}" in built.packages
    assert built.image_digest is not None
    with sandbox.open(built.image_digest, Limits(60), {}) as box:
        script = "import evalpipe_mirrored, os; print(evalpipe_mirrored.ANSWER, dict(os.environ))"
        outcome = box.run(["python3", "-c", script], env={}, cwd=".")
    assert outcome.stdout.startswith(b"47 "), outcome.stderr
    client = sandbox.client
    saved = io.BytesIO(b"".join(client.images.get(built.image_digest).save()))
    forms = {SECRET.encode(), quote(SECRET, safe="").encode()}
    told = json.dumps(client.images.get(built.image_digest).attrs).encode() + built.log_tail.encode() + outcome.stdout
    assert not any(form in told for form in forms)
    with tarfile.open(fileobj=saved) as archive:
        layers = [member for member in archive if member.name.endswith("layer.tar")]
        newest = archive.extractfile(max(layers, key=lambda member: member.offset))
        assert newest is not None
        assert not any(form in newest.read() for form in forms)


def test_packages_come_from_a_mirror_with_a_login(docker_sandbox: DockerSandbox, base_image: str) -> None:
    with serving("reader", SECRET) as index:
        url = f"http://reader:{quote(SECRET, safe='')}@127.0.0.1:{index.port}/simple"
        network = Network(mirrors={"pypi": url}, secrets=(SECRET,))
        with building(docker_sandbox, network) as builder:
            has_package_and_no_secret(docker_sandbox, builder.build(builder.plan(source(base_image))))
    assert any(path.startswith("/files/") for path in index.asked)


def test_packages_come_through_a_proxy_with_a_login(docker_sandbox: DockerSandbox, base_image: str) -> None:
    with serving("builder", SECRET) as proxy:
        network = Network(
            proxy=f"http://builder:{quote(SECRET, safe='')}@127.0.0.1:{proxy.port}",
            # A name that nothing resolves: only the proxy can know it.
            mirrors={"pypi": "http://packages.invalid/simple"},
            passed={"PIP_TRUSTED_HOST": "packages.invalid"},
            secrets=(SECRET,),
        )
        with building(docker_sandbox, network) as builder:
            has_package_and_no_secret(docker_sandbox, builder.build(builder.plan(source(base_image))))
    assert any(url.startswith("http://packages.invalid/files/") for url in proxy.asked)


@pytest.mark.parametrize(("host", "answer"), [("127.0.0.1:{port}", "401"), ("packages.invalid", "407")])
def test_a_mirror_or_proxy_that_refuses_the_login_is_no_missing_release(
    docker_sandbox: DockerSandbox, base_image: str, host: str, answer: str
) -> None:
    with serving("reader", SECRET) as index:
        login = f"http://reader:wrong@127.0.0.1:{index.port}"
        network = Network(
            proxy=login if answer == "407" else None,
            mirrors={"pypi": f"http://reader:wrong@{host.format(port=index.port)}/simple"},
            passed={"PIP_TRUSTED_HOST": "packages.invalid"},
            secrets=("wrong",),
        )
        with building(docker_sandbox, network) as builder:
            built = builder.build(builder.plan(source(base_image)))
    assert index.refused
    assert not index.asked
    assert (built.status, built.image_digest) == (BuildStatus.UNREACHABLE, None), built.log_tail
    assert f"{answer} Client Error" in built.log_tail
    assert "wrong" not in built.log_tail
