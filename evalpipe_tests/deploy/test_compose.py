"""deploy/compose: its files fit together, and its services run the pipeline on this engine with a real Postgres."""

from __future__ import annotations

import io
import json
import os
import shutil
import ssl
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from evalpipe.lake import Lake
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.sandbox import DockerSandbox, Limits
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import load_task_set
from evalpipe_tests.asking_agent import KEY_VARIABLE, REAL_KEY
from evalpipe_tests.deploy.services import COMPOSE, Deployment, deployed, read_services
from evalpipe_tests.pipeline.daemon import LAUNCH, RUN
from evalpipe_tests.pipeline.test_asking_agent import asking_workspace
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, make_workspace, repository_yaml

TOP = COMPOSE.parents[1]
_IMAGES = {"postgres": "evalpipe-test/deploy:postgres", "evalpipe": "evalpipe-test/deploy:evalpipe"}
_ASK = """
import sys, urllib.request
headers = {"Content-Type": "application/json"}
request = urllib.request.Request("http://localhost:3000/graphql", sys.argv[1].encode(), headers)
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""
_RELOAD = """
mutation { reloadRepositoryLocation(repositoryLocationName: "evalpipe") {
  __typename ... on WorkspaceLocationEntry { loadStatus } } }
"""
_REASON = """
query($id: ID!) { runOrError(runId: $id) { ... on Run { eventConnection { events {
  ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } }
  ... on RunFailureEvent { message error { message } } } } } } }
"""
_ENDED = ("SUCCESS", "FAILURE", "CANCELED")
_RUNS = "{ runsOrError { ... on Runs { results { id status } } } }"
_MODEL = """
import time
from evalpipe_tests.asking_agent import working_once
from evalpipe_tests.model_server import ModelServer
with ModelServer(working_once("echo '# looked at' >> shop/cli.py"), port=9000):
    time.sleep(3600)
"""


def _variables(root: Path = Path("/workspace"), **more: str) -> dict[str, str]:
    return {"EVALPIPE_WORKSPACE": str(root), "EVALPIPE_POSTGRES_PASSWORD": "p@ss:word/1", **more}


def test_a_run_is_given_what_the_services_have() -> None:
    services = read_services(_variables())
    code, webserver = services["code"], services["webserver"]
    context = json.loads(code["environment"]["DAGSTER_CONTAINER_CONTEXT"])["docker"]
    own = {"DAGSTER_CURRENT_IMAGE", "DAGSTER_CONTAINER_CONTEXT"}
    assert sorted(context["env_vars"]) == sorted(code["environment"].keys() - own)
    assert code["environment"].keys() - own == webserver["environment"].keys()
    assert code["environment"]["DAGSTER_CURRENT_IMAGE"] == code["image"] == webserver["image"]
    kwargs = context["container_kwargs"]
    assert (kwargs["pid_mode"], kwargs["uts_mode"], kwargs["working_dir"]) == (
        code["pid"],
        code["uts"],
        code["working_dir"],
    )
    bind, *others = code["volumes"]
    same = [f"{bind['source']}:{bind['target']}", *(volume for volume in others if not volume.startswith("./"))]
    assert kwargs["volumes"] == same


def test_every_path_that_an_engine_mounts_is_the_same_in_a_container() -> None:
    for name, service in read_services(
        _variables(EVALPIPE_TMPDIR="/scratch", EVALPIPE_DOCKER_SOCKET="/d.sock")
    ).items():
        if name == "postgres":
            continue
        binds = [volume for volume in service["volumes"] if isinstance(volume, str) and volume.startswith("/")]
        assert binds == ["/scratch:/scratch", "/d.sock:/var/run/docker.sock"]
        assert service["environment"]["TMPDIR"] == "/scratch"


def test_dagster_runs_here_as_in_a_workspace_but_for_its_database_and_its_launcher() -> None:
    yaml = YAML(typ="safe")
    ours = yaml.load(COMPOSE / "dagster.yaml")
    of_workspace = yaml.load(TOP / "dagster.yaml")
    assert list(ours.pop("storage")) == ["postgres"]
    assert ours.pop("run_launcher")["class"] == "ContainerRunLauncher"
    del of_workspace["storage"], of_workspace["run_launcher"]
    assert ours == of_workspace


def test_a_service_that_lasts_has_a_health_check_and_comes_back() -> None:
    services = read_services(_variables())
    assert services.keys() == {"postgres", "migrate", "code", "webserver", "daemon"}
    for name, service in services.items():
        assert ("healthcheck" in service, service["restart"]) == (
            (False, "no") if name == "migrate" else (True, "unless-stopped")
        )


@pytest.fixture(scope="module")
def images(docker_sandbox: DockerSandbox, base_image: str) -> dict[str, str]:
    """The images of compose.yaml, built on the base image of the tests; layers of an earlier build are taken again."""
    for target, tag in _IMAGES.items():
        docker_sandbox.client.images.build(
            fileobj=_build_context(),
            custom_context=True,
            dockerfile="deploy/compose/Dockerfile",
            target=target,
            tag=tag,
            buildargs={"BASE_IMAGE": base_image},
            network_mode="host",
            rm=True,
        )
    return _IMAGES


def _build_context() -> io.BytesIO:
    """What .dockerignore leaves of the checkout, and the certificates of this machine."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in ("pyproject.toml", "README.md", "evalpipe", "deploy"):
            tar.add(TOP / name, name, filter=_plain)
        certificates = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
        if certificates:
            tar.add(Path(certificates).resolve(), "deploy/compose/certificates/host.crt", filter=_plain)
    made.seek(0)
    return made


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    # The engine takes a layer again when names, modes and contents are the same.
    return None if "__pycache__" in member.name else member


@pytest.fixture
def tiny(docker_sandbox: DockerSandbox, base_image: str) -> Iterator[TinyWorkspace]:
    """A workspace that is not mined yet, at a path that leaves room for a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="deploy-"))
    tiny = make_workspace(folder / "workspace")
    tiny.write("data/repos/shop.yaml", repository_yaml([]))
    asking_workspace(tiny, "http://127.0.0.1:9000")
    tiny.write("data/sweeps/small.yaml", (tiny.root / "data/sweeps/small.yaml").read_text().replace(": 2\n", ": 1\n"))
    yield tiny
    own = DockerSandbox(Workbench(tiny.workspace).instance)
    own.kill({})
    own.client.close()
    shutil.rmtree(folder)


def _ask(services: Deployment, query: str, variables: Mapping[str, Any] | None = None) -> Any:
    body = json.dumps({"query": query, "variables": variables or {}})
    answer = json.loads(services.execute("webserver", "python", "-c", _ASK, body))
    assert "errors" not in answer, answer
    return answer["data"]


def _launch(services: Deployment, job: str, tags: Mapping[str, str]) -> str:
    """Let the daemon launch a job, and wait for its end; returns the id of the run, which has to succeed."""
    selector = {"jobName": job, "repositoryName": "__repository__", "repositoryLocationName": "evalpipe"}
    metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
    answer = _ask(services, LAUNCH, {"e": {"selector": selector, "executionMetadata": metadata}})["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    run = str(answer["run"]["runId"])

    end = time.monotonic() + 300
    while (status := _ask(services, RUN, {"id": run})["runOrError"]["status"]) not in _ENDED:
        assert time.monotonic() < end, f"{job} does not end\n{services.log('daemon')}"
        time.sleep(3)  # each question starts a Python in a container
    assert status == "SUCCESS", f"{job}: {_ask(services, _REASON, {'id': run})}\n{services.log('daemon')}"
    return run


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_services_run_a_sweep_and_come_back_from_a_backup(
    images: dict[str, str], tiny: TinyWorkspace, docker_sandbox: DockerSandbox, base_image: str
) -> None:
    """One test, because the services take half a minute to start."""
    client = docker_sandbox.client
    temporary = tiny.root.parent / "tmp"
    temporary.mkdir()
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    variables = _variables(
        tiny.root,
        EVALPIPE_IMAGE=images["evalpipe"],
        EVALPIPE_POSTGRES_IMAGE=images["postgres"],
        EVALPIPE_TMPDIR=str(temporary),
        EVALPIPE_DOCKER_SOCKET=host.removeprefix("unix://"),
        EVALPIPE_BASE_IMAGE=base_image,
        OPENAI_API_KEY=REAL_KEY,
    )
    provider = tiny.root / "data/providers/local.yaml"
    provider.write_text(provider.read_text().replace(KEY_VARIABLE, "OPENAI_API_KEY"))
    with deployed(client, temporary.parent.name, variables) as services:
        _start_model(services, images["evalpipe"])
        _launch(services, "mine", {"dagster/partition": "shop"})
        services.execute("code", "evalpipe", "validate", "--same-day")
        services.execute("code", "evalpipe", "freeze", "tiny", "--provisional")
        assert _ask(services, _RELOAD)["reloadRepositoryLocation"]["loadStatus"] == "LOADED"
        tasks = list(load_task_set(tiny.workspace.task_sets_dir / "tiny").tasks)
        _launch(services, "calibrate_tiny", {RANGE_START: tasks[0], RANGE_END: tasks[-1]})
        samples = {RANGE_START: f"original-1|{tasks[0]}", RANGE_END: f"original-1|{tasks[-1]}"}
        with _box_of_a_neighbour(tiny, base_image) as is_there:
            _launch(services, "small__agent_runs", samples)
            assert is_there(), "a run took the box of a process outside its container for a leftover"
        _launch(services, "small__graded_results", samples)
        _launch(services, "small__report", {})
        attempts = Lake(tiny.lake).read("agent_runs", "small", "asking").to_pylist()
        assert [(row["outcome"], row["model_calls"]) for row in attempts] == [("finished", 2)] * 2
        assert (tiny.lake / "reports/small/report.html").exists()
        assert list(temporary.glob("evalpipe-gateway-*")) == []
        for name in ("postgres", "code", "webserver", "daemon"):
            services.wait_until_healthy(name)
        _restore(services, tiny)
    mine: dict[str, str | list[str] | bool] = {"label": f"evalpipe.instance={Workbench(tiny.workspace).instance}"}
    assert client.containers.list(all=True, filters=mine) == []


@contextmanager
def _box_of_a_neighbour(tiny: TinyWorkspace, base_image: str) -> Iterator[Callable[[], bool]]:
    """A box of the same workspace that this process owns; tells whether its container is still there."""
    sandbox = DockerSandbox(Workbench(tiny.workspace).instance)
    with sandbox.open(base_image, Limits(timeout_s=60), {"purpose": "neighbour"}) as box:
        box.run(["true"], env={}, cwd=".")
        labels: dict[str, str | list[str] | bool] = {
            "label": ["evalpipe.purpose=neighbour", f"evalpipe.instance={sandbox.instance}"]
        }
        yield lambda: len(sandbox.client.containers.list(all=True, filters=labels)) == 1
    sandbox.client.close()


def _start_model(services: Deployment, image: str) -> None:
    tests = TOP / "evalpipe_tests"
    source = {str(tests): {"bind": "/tests/evalpipe_tests", "mode": "ro"}}
    services.run(image, ["python", "-c", _MODEL], volumes=source, environment={"PYTHONPATH": "/tests"})


def _restore(services: Deployment, tiny: TinyWorkspace) -> None:
    """Back up, lose everything, and restore, by the commands of docs/deploy.md."""
    before, grades = _ask(services, _RUNS), Lake(tiny.lake).read("graded_results").to_pylist()
    assert len(before["runsOrError"]["results"]) > 5
    assert len(grades) == 2
    dump = "/var/lib/postgresql/evalpipe.dump"
    for name in ("webserver", "daemon", "code"):
        services.containers[name].stop(timeout=20)
    services.execute("postgres", "pg_dump", "-U", "evalpipe", "-Fc", "-f", dump, "evalpipe")
    archive = tiny.root.parent / "data.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tiny.root / "data", "data")
    services.execute("postgres", "dropdb", "-U", "evalpipe", "--force", "evalpipe")
    shutil.rmtree(tiny.root / "data" / "lake")
    services.execute("postgres", "createdb", "-U", "evalpipe", "evalpipe")
    services.execute("postgres", "pg_restore", "-U", "evalpipe", "-d", "evalpipe", dump)
    with tarfile.open(archive) as tar:
        tar.extractall(tiny.root, filter="tar")
    for name in ("code", "webserver"):
        services.containers[name].start()
        services.wait_until_healthy(name)
    services.execute("code", "evalpipe", "lake", "verify")
    assert _ask(services, _RUNS) == before
    assert Lake(tiny.lake).read("graded_results").to_pylist() == grades
