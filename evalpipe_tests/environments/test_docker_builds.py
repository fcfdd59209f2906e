"""Real builds on a real engine; what is built runs as a box does: user 1000, no network, read-only but /work."""

from __future__ import annotations

import io
import json
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.environments import (
    BaseMissing,
    BuildSettings,
    BuildStatus,
    BuiltEnvironment,
    DockerEnvironmentBuilder,
    DockerfileSource,
    EnvironmentSource,
    ImageSource,
    PlannedBuild,
    Recipe,
    RecipeSource,
)
from evalpipe.environments.build_container import BuildContainer, remove_leftover_builds
from evalpipe.environments.checks import forbidden_paths_script
from evalpipe.environments.settings import Network, build_settings
from evalpipe.runners.preparation import LAYS_FILES
from evalpipe.sandbox import DockerSandbox, EngineUnavailable, FileEntry, Interrupted, Limits, Outcome
from evalpipe.sandbox.archive import TarSpool
from evalpipe.sandbox.engine import Engine
from evalpipe_tests.environments.trees import NO_TREE, TextTree
from evalpipe_tests.history.builder import Builder, git

pytestmark = [pytest.mark.docker, pytest.mark.slow]

LIMITS = Limits(timeout_s=60, memory_bytes=512 * 1024**2, pids=64)
# Nothing that an earlier session left on the engine may stand for what is built here.
SESSION = uuid.uuid4().hex
SECRET = f"canary-{SESSION}"
SETTINGS = build_settings(
    Network(
        certificates=f"-----BEGIN CERTIFICATE-----\n{SECRET}\n".encode(),
        proxy=f"http://user:{SECRET}@localhost:9",
        mirrors={
            **dict.fromkeys(("pypi", "npm", "go", "maven"), f"https://reader:{SECRET}@localhost:9/simple"),
            "crates": "https://localhost:9/crates",
        },
        passed={"CARGO_REGISTRIES_CORP_TOKEN": SECRET},
        secrets=(SECRET,),
    )
)
TREE = TextTree({b"setup.py": b"print(1)\n", b"sub dir/run.sh": b"#!/bin/sh\necho ran\n", b"name \xff": b"odd"})
STEPS = (
    # What the step can see, and what it leaves in every place that a tool might.
    'for file in "$HOME/.npmrc" "$HOME/.m2/settings.xml" /work/.cargo/config.toml "$SSL_CERT_FILE" "$APT_CONFIG"; do\n'
    'test -s "$file"; done; echo "$PIP_INDEX_URL" > "$HOME/.netrc"\n'
    'echo "$HTTPS_PROXY" > /tmp/proxy; echo "$HTTPS_PROXY" > "$EVALPIPE_CACHE/proxy"; echo "$HTTPS_PROXY" > log.txt\n'
    'id -u > /opt/who; pwd > /opt/where; "./sub dir/run.sh" > /opt/ran; ls | wc -l > /opt/count; /opt/own/tool',
    "cat > /opt/text <<'END'\n$HOME \"quoted\"\nEND\n"
    "mkdir -p build/deep; echo made > build/deep/version.py; echo other > build/other; echo shadow > setup.py\n"
    "echo said; printf 'zope==2\\nabc==1\\n\\n' > /opt/evalpipe/packages.txt",
)
RECIPE = Recipe(
    "test",
    1,
    steps=STEPS,
    env={"SESSION": SESSION, "PATH": "/opt/own:$PATH", "ODD": "a 'b' \"c\" $d\\"},
    files={"/opt/own/tool": b"#!/bin/sh\necho tool > /opt/tool\n", "/opt/own/data": b"\xff\n"},
    decided_by=(b"setup.py",),
    keeps=("build/deep/**", "setup.py"),
)


@pytest.fixture(scope="module")
def builder(docker_sandbox: DockerSandbox) -> Iterator[DockerEnvironmentBuilder]:
    """A builder of an instance of its own; its images and its cache are removed at the end."""
    instance = f"test-builds-{SESSION}"
    yield DockerEnvironmentBuilder(instance, SETTINGS, timeout_s=60)
    client = docker_sandbox.client
    for image in client.images.list(filters={"label": f"evalpipe.instance={instance}"}):
        client.images.remove(str(image.id), force=True)
    client.volumes.get(f"evalpipe-cache-{instance}").remove()


@pytest.fixture(scope="module")
def built(builder: DockerEnvironmentBuilder, base_image: str) -> BuiltEnvironment:
    """An image that every kind of file was laid into."""
    found = builder.build(builder.plan(RecipeSource(base_image, RECIPE, TREE)))
    assert found.status is BuildStatus.BUILT, found.log_tail
    return found


def run(sandbox: DockerSandbox, image: str | None, script: str) -> Outcome:
    assert image is not None
    with sandbox.open(image, LIMITS, {}) as box:
        box.put([FileEntry(b"repo/file", 0o100644, b"1\n")])
        return box.run(["sh", "-c", script], env={}, cwd="/work/repo")


def steps(base_image: str, *texts: str) -> EnvironmentSource:
    """A recipe of steps alone, which no other session has built."""
    return RecipeSource(base_image, Recipe("test", 1, texts, env={"SESSION": SESSION}), NO_TREE)


def containers_of_builds(sandbox: DockerSandbox) -> list[str]:
    found = sandbox.client.api.containers(all=True, filters={"name": f"evalpipe-build-test-builds-{SESSION}"})
    return [str(container["Id"]) for container in found]


def test_steps_run_as_root_in_the_tree_with_its_files(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    outcome = run(docker_sandbox, built.image_digest, "cd /opt && cat who where ran count tool text")
    assert outcome.stdout == b'0\n/work/repo\nran\n4\ntool\n$HOME "quoted"\n', outcome.stderr
    assert built.packages == ("abc==1", "zope==2")
    assert built.log_tail == "said"


def test_image_runs_as_the_user_in_an_empty_work_folder(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    script = "id -u; id -un; ls -A /work; touch new /work/top; find /opt ! -readable; ls -ld /work | cut -c1-10"
    outcome = run(docker_sandbox, built.image_digest, script)
    assert outcome.stdout == b"1000\nevalpipe\nrepo\ndrwxrwxrwx\n", outcome.stderr
    assert run(docker_sandbox, built.image_digest, "ls -A /run/evalpipe /var/cache/evalpipe").stdout.split() == [
        b"/run/evalpipe:",
        b"/var/cache/evalpipe:",
    ]
    config = docker_sandbox.client.images.get(str(built.image_digest)).attrs["Config"]
    assert (config["User"], config["WorkingDir"], config["Entrypoint"]) == ("1000:1000", "/work", None)
    assert config["Labels"]["evalpipe.managed"] == "1"
    assert "evalpipe.owner" not in config["Labels"]


def test_environment_of_the_recipe_stays_in_the_image(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    env = docker_sandbox.client.images.get(str(built.image_digest)).attrs["Config"]["Env"]
    by_name = dict(entry.split("=", 1) for entry in env)
    assert by_name["PATH"].startswith("/opt/own:/")
    assert "$PATH" not in by_name["PATH"]
    assert by_name["ODD"] == "a 'b' \"c\" $d\\"
    assert not by_name.keys() & {"HTTPS_PROXY", "PIP_INDEX_URL", "HOME", "UV_CACHE_DIR", "EVALPIPE_CACHE"}


def test_what_the_steps_wrote_and_the_recipe_keeps_is_there_and_nothing_else(
    docker_sandbox: DockerSandbox, built: BuiltEnvironment
) -> None:
    script = "cd /opt/evalpipe/installed && find . -type f && cat build/deep/version.py"
    outcome = run(docker_sandbox, built.image_digest, script)
    assert outcome.stdout == b"./build/deep/version.py\nmade\n"
    assert built.image_digest is not None
    assert docker_sandbox.label(built.image_digest, LAYS_FILES) == "yes"


def test_no_secret_is_in_the_history_the_configuration_or_any_file(
    docker_sandbox: DockerSandbox, built: BuiltEnvironment, tmp_path: Path
) -> None:
    client = docker_sandbox.client
    image = client.images.get(str(built.image_digest))
    assert SECRET not in json.dumps([image.history(), image.attrs])
    exported = tmp_path / "image.tar"
    with exported.open("wb") as file:
        for chunk in client.api.get_image(str(image.id)):
            file.write(chunk)
    # Layers are tars without compression in this format, so a plain search sees every file.
    assert subprocess.run(["grep", "-c", "-a", SESSION, exported], capture_output=True, check=True).stdout != b"0\n"
    assert subprocess.run(["grep", "-q", "-a", SECRET, exported], check=False).returncode == 1


def test_second_build_starts_no_container_and_gives_the_same_image(
    builder: DockerEnvironmentBuilder, base_image: str, built: BuiltEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BuildContainer, "__enter__", lambda self: pytest.fail("a container was made"))
    again = builder.build(builder.plan(RecipeSource(base_image, RECIPE, TREE)))
    assert (again.status, again.image_digest, again.packages) == (BuildStatus.BUILT, built.image_digest, built.packages)
    other = DockerEnvironmentBuilder(f"other-{SESSION}")
    found = other.build(other.plan(RecipeSource(base_image, RECIPE, TREE)))
    assert found.image_digest == built.image_digest


def test_what_somebody_makes_from_an_image_is_not_taken_for_it(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str, built: BuiltEnvironment
) -> None:
    text = f"FROM {built.image_digest}\nRUN touch /tmp/more\n".encode()
    made, _ = docker_sandbox.client.images.build(fileobj=io.BytesIO(text), rm=True, network_mode="none")
    again = builder.build(builder.plan(RecipeSource(base_image, RECIPE, TREE)))
    assert again.image_digest == built.image_digest
    docker_sandbox.client.images.remove(str(made.id))


def test_image_has_no_network_and_no_rights_at_run(docker_sandbox: DockerSandbox, built: BuiltEnvironment) -> None:
    script = (
        "cat /proc/net/dev | tail -n +3 | cut -d: -f1; touch /opt/evalpipe/x 2>/dev/null && echo wrote; "
        "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 443), 2)' && echo connected; true"
    )
    assert run(docker_sandbox, built.image_digest, script).stdout.split() == [b"lo"]


def test_recipe_that_nothing_of_the_tree_decides_does_not_see_it(
    builder: DockerEnvironmentBuilder, base_image: str
) -> None:
    source = steps(base_image, "ls -A; echo end; false")
    assert isinstance(source, RecipeSource)
    found = builder.build(builder.plan(replace(source, tree=TREE)))
    assert found.log_tail.splitlines()[0] == "end"


def test_cache_outlives_a_build(builder: DockerEnvironmentBuilder, base_image: str, built: BuiltEnvironment) -> None:
    found = builder.build(builder.plan(steps(base_image, 'test -s "$EVALPIPE_CACHE/proxy"; exit 7')))
    assert "(exit code 7)" in found.log_tail


def test_failing_step_is_a_status_with_the_end_of_its_log(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    script = 'for n in $(seq 1 100); do echo line $n; done\necho "$HTTPS_PROXY" >&2\nfalse\necho never'
    found = builder.build(builder.plan(steps(base_image, "true", script)))
    assert (found.status, found.image_digest) == (BuildStatus.FAILED, None)
    lines = found.log_tail.splitlines()
    assert (len(lines), lines[-3]) == (40, "line 100")
    assert lines[-2] == "http://user:***@localhost:9"
    assert lines[-1].startswith("step 2 of 2 failed: for n in")
    assert lines[-1].endswith("(exit code 1)")
    assert containers_of_builds(docker_sandbox) == []


def test_missing_release_is_told_from_a_failure_however_long_the_log_goes_on(
    builder: DockerEnvironmentBuilder, base_image: str
) -> None:
    script = "echo 'No solution found when resolving dependencies:'; seq 1 100; exit 1"
    found = builder.build(builder.plan(steps(base_image, script)))
    assert found.status is BuildStatus.UNRELEASED
    assert "No solution" not in found.log_tail.partition("step 1")[0]


def test_build_past_its_deadline_is_a_timeout(
    docker_sandbox: DockerSandbox, builder: DockerEnvironmentBuilder, base_image: str
) -> None:
    quick = DockerEnvironmentBuilder(f"test-builds-{SESSION}", timeout_s=5)
    started = time.monotonic()
    found = quick.build(quick.plan(steps(base_image, "echo begun; sleep 60")))
    assert time.monotonic() - started < 20
    assert (found.status, found.log_tail.splitlines()) == (BuildStatus.TIMEOUT, ["begun", "stopped after 5 s"])
    assert containers_of_builds(docker_sandbox) == []


def test_full_disk_in_a_step_is_told_from_a_failure(builder: DockerEnvironmentBuilder, base_image: str) -> None:
    found = builder.build(builder.plan(steps(base_image, "echo 'write error: No space left on device'; exit 1")))
    assert found.status is BuildStatus.DISK_FULL


def test_abandoned_build_ends_at_once(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    planned, ends = builder.plan(steps(base_image, "sleep 50")), list[BaseException]()

    def build() -> None:
        try:
            builder.build(planned)
        except Interrupted as error:
            ends.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    while not containers_of_builds(docker_sandbox):
        time.sleep(0.05)
    builder.abandon()
    thread.join(20)
    assert len(ends) == 1
    assert containers_of_builds(docker_sandbox) == []


def test_leftovers_of_dead_processes_are_removed_and_nothing_else(
    docker_sandbox: DockerSandbox, base_image: str
) -> None:
    engine, instance = Engine(), f"test-builds-{SESSION}"
    host = os.uname().nodename
    dead, alive = (BuildContainer(engine, instance, base_image, {}, BuildSettings(), timeout_s=60) for _ in range(2))
    dead.name = f"evalpipe-build-{instance}-{f'{host}:999999999:1'.encode().hex()}-{uuid.uuid4().hex[:12]}"
    with dead, alive:
        assert len(containers_of_builds(docker_sandbox)) == 2
        assert remove_leftover_builds(engine, instance) == 1
        assert len(containers_of_builds(docker_sandbox)) == 1
        alive.run("true")


def test_released_copy_of_the_project_is_a_leak_and_named(builder: DockerEnvironmentBuilder, base_image: str) -> None:
    make = "mkdir -p /opt/a/node_modules/shop /work/repo/node_modules/shop; touch /opt/a/node_modules/shop/package.json"
    check = forbidden_paths_script(["*/node_modules/shop/package.json", "*/registry/src/*/shop-[0-9]*"])
    source = steps(base_image, make)
    assert isinstance(source, RecipeSource)
    found = builder.build(builder.plan(replace(source, recipe=replace(source.recipe, check=check))))
    assert (found.status, found.image_digest) == (BuildStatus.LEAKS_PROJECT, None)
    assert found.log_tail.splitlines()[1:] == ["/opt/a/node_modules/shop/package.json"]
    # The tree's own are not copies, and neither are links.
    own = steps(base_image, "mkdir -p node_modules/shop /opt/a; touch node_modules/shop/package.json; ln -s / /opt/a/x")
    assert isinstance(own, RecipeSource)
    own = replace(own, recipe=replace(own.recipe, check=check))
    assert builder.build(builder.plan(own)).status is BuildStatus.BUILT


@pytest.mark.parametrize("kind", ["packed", "loose"])
def test_repository_with_a_commit_after_the_base_is_a_leak_and_another_is_not(
    builder: DockerEnvironmentBuilder, base_image: str, tmp_path: Path, kind: str
) -> None:
    repository = Builder(tmp_path / "shop.git")
    repository.commit({b"a": b"1"})
    change = repository.commit({b"a": b"2"})
    git(repository.path, "bundle", "create", "--quiet", str(tmp_path / "bundle"), "main")
    unpack = (
        "mv /opt/dep/objects/pack/*.pack /opt/p; rm /opt/dep/objects/pack/*; git -C /opt/dep unpack-objects < /opt/p"
    )
    clone = "git clone --quiet --bare /opt/bundle /opt/dep" + (f"\n{unpack}" if kind == "loose" else "")
    files = {"/opt/bundle": (tmp_path / "bundle").read_bytes()}
    recipe = Recipe("test", 1, (clone,), env={"SESSION": SESSION}, files=files)
    planned = builder.plan(RecipeSource(base_image, recipe, NO_TREE))
    leaks = builder.build(replace(planned, newer=frozenset({change, "1" * 40})))
    assert leaks.status is BuildStatus.LEAKS_PROJECT, leaks.log_tail
    assert "/opt/dep/objects/" in leaks.log_tail
    assert builder.build(replace(planned, newer=frozenset({"1" * 40}))).status is BuildStatus.BUILT


def test_own_image_with_a_commit_after_the_base_is_a_leak(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    client = docker_sandbox.client
    made = client.containers.create(base_image, ["true"])
    change = "0123456789" * 4
    folder = f"objects/{change[:2]}"
    with TarSpool(0, 0) as spool:
        spool.add([FileEntry(f"{folder}/{change[2:]}".encode(), 0o100644, b"x")])
        client.api.put_archive(str(made.id), "/opt", spool.finish())
    image = str(made.commit("evalpipe-test/own", SESSION).id)
    made.remove()
    planned = replace(builder.plan(ImageSource(image)), newer=frozenset({change}))
    assert builder.build(planned).status is BuildStatus.LEAKS_PROJECT
    assert builder.build(builder.plan(ImageSource(image))).status is BuildStatus.BUILT
    client.images.remove(image)


def test_own_dockerfile_with_a_commit_after_the_base_is_a_leak_each_time(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    docker_sandbox.client.images.get(base_image).tag("evalpipe-test/leaks", SESSION)
    change = "0123456789" * 4
    folder = f"/opt/objects/{change[:2]}"
    text = f"FROM evalpipe-test/leaks:{SESSION}\nRUN mkdir -p {folder} && touch {folder}/{change[2:]}\n"
    source = DockerfileSource("Dockerfile", {"Dockerfile": text.encode()})
    planned = replace(builder.plan(source), newer=frozenset({change}))
    assert [builder.build(planned).status for _ in range(2)] == [BuildStatus.LEAKS_PROJECT] * 2
    docker_sandbox.client.images.remove(f"evalpipe-test/leaks:{SESSION}")


def test_container_that_a_person_starts_from_an_image_is_left_alone(
    docker_sandbox: DockerSandbox, built: BuiltEnvironment
) -> None:
    by_hand = docker_sandbox.client.containers.create(str(built.image_digest), ["true"])
    own = DockerSandbox(f"test-builds-{SESSION}")
    assert own.reap(()) == own.kill({}) == 0
    by_hand.remove()


def test_own_dockerfile_is_built_from_its_folder(
    builder: DockerEnvironmentBuilder, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    docker_sandbox.client.images.get(base_image).tag("evalpipe-test/base", SESSION)
    text = f"FROM evalpipe-test/base:{SESSION}\nCOPY a/b /opt/copied\nRUN cat /opt/copied > /opt/again\n"
    source = DockerfileSource("Own.Dockerfile", {"Own.Dockerfile": text.encode(), "a/b": b"content\n"})
    planned = builder.plan(source)
    found = builder.build(planned)
    assert found.status is BuildStatus.BUILT, found.log_tail
    assert run(docker_sandbox, found.image_digest, "cat /opt/again").stdout == b"content\n"
    assert SECRET not in json.dumps(docker_sandbox.client.images.get(str(found.image_digest)).history())
    assert builder.build(planned).image_digest == found.image_digest
    broken = replace(source, context={**source.context, "Own.Dockerfile": text.encode() + b"RUN echo why; exit 3\n"})
    failed = builder.build(builder.plan(broken))
    assert failed.status is BuildStatus.FAILED
    assert "why" in failed.log_tail
    assert "returned a non-zero code: 3" in failed.log_tail.splitlines()[-1]
    docker_sandbox.client.images.remove(f"evalpipe-test/base:{SESSION}")


@pytest.mark.parametrize("kind", ["base", "image"])
def test_missing_image_is_named_with_what_to_do(builder: DockerEnvironmentBuilder, kind: str) -> None:
    missing = "registry.invalid/evalpipe-test:none"
    source = ImageSource(missing) if kind == "image" else steps(missing)
    with pytest.raises(BaseMissing, match=r"registry\.invalid/evalpipe-test:none.*EVALPIPE_BASE_IMAGE"):
        builder.plan(source)


def test_finished_image_is_taken_as_it_is(builder: DockerEnvironmentBuilder, base_image: str) -> None:
    planned = builder.plan(ImageSource(base_image))
    found = builder.build(planned)
    assert (found.status, found.image_digest, planned.base_digest) == (BuildStatus.BUILT, base_image, base_image)


def test_image_that_is_gone_does_not_exist(builder: DockerEnvironmentBuilder) -> None:
    assert not builder.exists("sha256:" + "0" * 64)


def test_dead_engine_is_no_missing_image(
    builder: DockerEnvironmentBuilder, base_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = DockerEnvironmentBuilder("test-dead")
    dead._engine.api.base_url = f"http+unix://{tmp_path}/none.sock"
    source = steps(base_image)
    with pytest.raises(EngineUnavailable):
        dead.plan(source)
    with pytest.raises(EngineUnavailable):
        dead.build(PlannedBuild(source, "key", base_image))
    with pytest.raises(EngineUnavailable):
        dead.exists("x")
