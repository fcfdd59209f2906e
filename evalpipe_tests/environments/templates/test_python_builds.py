"""One real build, with the network, of a project that has all the hard cases at once."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.config.network import machine_network
from evalpipe.environments import BuildStatus, BuiltEnvironment, DockerEnvironmentBuilder, Project, RecipeSource
from evalpipe.environments.settings import Network, build_settings
from evalpipe.environments.templates.python import PythonTemplate
from evalpipe.sandbox import DockerSandbox, FileEntry, Limits
from evalpipe_tests.environments.templates.memory_tree import MemoryChange
from evalpipe_tests.environments.trees import TextTree

pytestmark = [pytest.mark.docker, pytest.mark.slow]

# pytest depends on iniconfig, so a resolver would bring the released one; setuptools-scm would ask git; the lock file
# names a version of attrs that is newer than the day, which the commit has decided.
TREE = TextTree(
    {
        b"pyproject.toml": b"""\
[build-system]
requires = ["setuptools", "setuptools-scm"]
build-backend = "setuptools.build_meta"
[project]
name = "iniconfig"
dynamic = ["version"]
[project.optional-dependencies]
fast = ["sortedcontainers"]
[dependency-groups]
test = ["pytest", "attrs", "iniconfig[fast]"]
docs = ["sphinx"]
[tool.setuptools_scm]
version_file = "src/iniconfig/_version.py"
""",
        b"uv.lock": b"""\
[[package]]
name = "attrs"
version = "25.3.0"
source = { registry = "https://example.com/simple" }
""",
        b"src/iniconfig/__init__.py": b"from iniconfig._version import version\n",
    }
)
MANIFEST = TREE.contents[b"pyproject.toml"].decode()
# A new requirement, and a newer version of one that is there; the sources of the change are nobody's concern.
CHANGE = MemoryChange(
    {path.decode(): text.decode() for path, text in TREE.contents.items()},
    {
        "pyproject.toml": MANIFEST.replace('"attrs", ', '"attrs", "toolz>=0.12", ').replace(
            '["sortedcontainers"]', '["sortedcontainers", "pluggy<1.5"]'
        ),
        "src/iniconfig/added.py": "",
    },
)
DAY = dt.date(2025, 1, 1)
CHECK = """\
import importlib.metadata, os, iniconfig
print(iniconfig.__file__, iniconfig.version, importlib.metadata.version("iniconfig"))
print(sorted(os.listdir("/opt/evalpipe")), os.path.exists(".git"), os.listdir("src/iniconfig"))
"""


@pytest.fixture(scope="module")
def built(docker_sandbox: DockerSandbox, base_image: str) -> Iterator[BuiltEnvironment]:
    found = machine_network(None)
    network = Network(
        certificates=Path(found.certificates.value).read_bytes() if found.certificates else None,
        proxy=found.proxy.value if found.proxy else None,
        mirrors={name: mirror.value for name, mirror in found.mirrors.items()},
        passed=found.passed,
    )
    instance = f"test-python-{uuid.uuid4().hex}"
    builder = DockerEnvironmentBuilder(instance, build_settings(network), timeout_s=250)
    recipe = PythonTemplate().recipe(Project(TREE, DAY, "v7.1", change=CHANGE))
    result = builder.build(builder.plan(RecipeSource(base_image, recipe, TREE)))
    assert result.status is BuildStatus.BUILT, result.log_tail
    yield result
    docker_sandbox.client.images.remove(str(result.image_digest), force=True)
    docker_sandbox.client.volumes.get(f"evalpipe-cache-{instance}").remove()


def test_locked_versions_are_exact_and_all_others_are_of_the_day(built: BuiltEnvironment) -> None:
    versions = dict(package.partition("==")[::2] for package in built.packages)
    assert versions["attrs"] == "25.3.0"
    # The newest of that day; 8.3.5 came in March.
    assert versions["pytest"] == "8.3.4"
    assert "sortedcontainers" in versions
    assert "sphinx" not in versions


def test_what_the_change_asks_for_beyond_its_base_is_there_as_of_the_day(built: BuiltEnvironment) -> None:
    versions = dict(package.partition("==")[::2] for package in built.packages)
    # The newest of that day; 1.1.0 came in October.
    assert versions["toolz"] == "1.0.0"
    assert versions["pluggy"] == "1.4.0"


def test_the_tree_is_imported_with_the_version_of_its_release(
    built: BuiltEnvironment, docker_sandbox: DockerSandbox
) -> None:
    limits = Limits(timeout_s=60, memory_bytes=512 * 1024**2, pids=64)
    with docker_sandbox.open(str(built.image_digest), limits, {}) as box:
        box.put(FileEntry(b"repo/" + entry.path, entry.mode, entry.data) for entry in TREE.files())
        box.put([FileEntry(b"check.py", 0o100644, CHECK.encode())])
        outcome = box.run(
            ["sh", "-c", "cp -Rn /opt/evalpipe/installed/. . && python3 ../check.py"],
            env={},
            cwd="/work/repo",
        )
    assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
    first, second = outcome.stdout.decode().splitlines()
    assert first == "/work/repo/src/iniconfig/__init__.py 7.1 7.1"
    assert second.startswith("['installed', 'packages.txt', 'venv'] False [")
    assert "_version.py" in second
    assert "added.py" not in second
