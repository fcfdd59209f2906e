"""Looks at the machine and the workspace, and says what is missing and how to get it.

Every look is short and stays on this machine; nothing is changed. What only lowers isolation or comfort is advice
(`required` is false) and does not make the machine unfit.
"""

import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import DockerException, ImageNotFound

from evalpipe.config.network import MachineNetwork, machine_network
from evalpipe.config.problems import ConfigError, Problem
from evalpipe.config.repository import RepositoryConfig, resolve_base_image
from evalpipe.config.workspace import Workspace

_GIB = 1024**3
LEAST_PYTHON = (3, 11)
# A hostile patch makes older ones write where it should not (CVE-2023-25652, git apply). The fix came to every
# line from 2.30.9 to 2.39.3, so between these two a version may have it or not.
LEAST_GIT = (2, 30, 9)
ADVISED_GIT = (2, 39, 3)
LEAST_DISK = 5 * _GIB
ADVISED_MEMORY = 4 * _GIB
_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found. `remedy` is empty when all is well; only `required` ones make a machine unfit."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True


def examine_machine(workspace: Workspace | None) -> list[Finding]:
    """Return every finding, in the order in which to mend them. Takes under two seconds, without network."""
    findings = [
        _python(),
        _git(),
        *_engine(workspace),
        _unshare(),
        _disk(workspace),
        _memory(),
        *_network(workspace),
    ]
    if workspace is None:
        remedy = "make one with: evalpipe init DIR"
        findings.append(Finding("workspace", False, "there is none here or above", remedy, required=False))
        return findings
    findings.append(Finding("workspace", True, str(workspace.root)))
    findings.extend(_configuration(workspace))
    if _git_version() is not None:
        findings.extend(_source(workspace, config) for config in workspace.load_repositories().items.values())
    return findings


def is_fit(findings: list[Finding]) -> bool:
    """Whether nothing that is required is missing."""
    return all(finding.ok for finding in findings if finding.required)


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < LEAST_PYTHON:
        return Finding("python", False, version, "install Python 3.11 or newer")
    return Finding("python", True, version)


def _git() -> Finding:
    version = _git_version()
    if version is None:
        return Finding("git", False, "there is no git on the path", "install it, as: apt-get install git")
    shown = ".".join(str(part) for part in version)
    if version < LEAST_GIT:
        return Finding("git", False, shown, "install 2.39.3 or newer: this one has open holes in git apply")
    if version < ADVISED_GIT:
        remedy = "better 2.39.3 or newer, which closes holes in git apply, unless your system patched this one"
        return Finding("git", False, shown, remedy, required=False)
    return Finding("git", True, shown)


def _git_version() -> tuple[int, ...] | None:
    # GitPython fails while it is imported on a machine without git, so git is looked for first.
    if shutil.which("git") is None:
        return None
    from git import Git

    return tuple(Git().version_info)


def _engine(workspace: Workspace | None) -> Iterator[Finding]:
    try:
        client = docker.from_env(timeout=_SECONDS)
    except DockerException as error:
        yield _no_engine(error)
        return
    try:
        version = str(client.version()["Version"])
    except (DockerException, OSError) as error:
        yield _no_engine(error)
        return
    else:
        yield Finding("docker engine", True, version)
        for image in _base_images(workspace):
            yield _base_image(client, image)
    finally:
        client.close()


def _no_engine(error: Exception) -> Finding:
    reason = str(error).splitlines()[0][:200]
    if host := os.environ.get("DOCKER_HOST"):
        remedy = f"start the engine of DOCKER_HOST ({host}), or unset DOCKER_HOST"
        return Finding("docker engine", False, f"no engine answers: {reason}", remedy)
    remedy = (
        "install Docker Engine, start it, and let your user reach its socket; "
        "until then the process sandbox is used, whose isolation is weaker"
    )
    return Finding("docker engine", False, f"no engine answers: {reason}", remedy, required=False)


def _base_images(workspace: Workspace | None) -> list[str]:
    """Return the images that repositories begin with, those of teams that bring a finished one included."""
    if workspace is None:
        return []
    environments = [config.environment for config in workspace.load_repositories().items.values()]
    named = [environment for environment in environments if environment.dockerfile is None]
    return sorted({environment.image or resolve_base_image(environment) for environment in named})


def _base_image(client: docker.DockerClient, image: str) -> Finding:
    name = f"image {image}"
    try:
        digest = client.images.get(image).id
    except ImageNotFound:
        remedy = f"it is pulled when first needed; to have it now: docker pull {image}"
        return Finding(name, False, "is not on this machine", remedy, required=False)
    except (DockerException, OSError) as error:
        return Finding(name, False, str(error).splitlines()[0][:200], "see the engine's log", required=False)
    return Finding(name, True, str(digest))


def _unshare() -> Finding:
    if shutil.which("unshare") is None:
        remedy = "install util-linux, so that the process sandbox can cut the network off"
        return Finding("unshare", False, "there is no unshare on the path", remedy, required=False)
    for options in (["--user", "--map-root-user", "--net"], ["--net"]):
        try:
            done = subprocess.run(["unshare", *options, "true"], capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return Finding("unshare", True, "the process sandbox can cut the network off")
    remedy = "use Docker, or let users make namespaces (sysctl user.max_user_namespaces)"
    detail = "the kernel allows no network namespace here; the process sandbox would keep the network"
    return Finding("unshare", False, detail, remedy, required=False)


def _disk(workspace: Workspace | None) -> Finding:
    place = workspace.lake_dir if workspace else Path.cwd()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / _GIB:.1f} GiB free at {place}"
    if free < LEAST_DISK:
        return Finding("disk", False, detail, f"free some: at least {LEAST_DISK // _GIB} GiB are needed")
    return Finding("disk", True, detail)


def _memory() -> Finding:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    detail = f"{size / _GIB:.1f} GiB"
    if size < ADVISED_MEMORY:
        remedy = "lower `memory` in the limits of repositories and sweeps, or expect out-of-memory outcomes"
        return Finding("memory", False, detail, remedy, required=False)
    return Finding("memory", True, detail)


def _network(workspace: Workspace | None) -> Iterator[Finding]:
    """What the builds of images are told of the network, without secrets."""
    try:
        network = machine_network(workspace)
    except ConfigError as error:
        yield from (_wrong("network", problem) for problem in error.problems)
        return
    yield _certificates(network)
    yield Finding("proxy", True, network.shown(network.proxy) if network.proxy else "none")
    mirrors = [f"{name} {network.shown(mirror)}" for name, mirror in network.mirrors.items()]
    yield Finding("package mirrors", True, ", ".join(mirrors) or "none: packages come from the public registries")


def _certificates(network: MachineNetwork) -> Finding:
    if network.certificates is not None:
        return Finding("CA bundle", True, f"{network.shown(network.certificates)}; builds of images trust it too")
    for place in (ssl.get_default_verify_paths().cafile, *_CERTIFICATES):
        if place and Path(place).is_file():
            return Finding("CA bundle", True, f"{place}; builds of images use that of their base image")
    remedy = "install ca-certificates, or name your bundle in SSL_CERT_FILE"
    return Finding("CA bundle", False, "none found", remedy, required=False)


def _configuration(workspace: Workspace) -> Iterator[Finding]:
    folders = (
        ("repositories", workspace.repos_dir, workspace.load_repositories()),
        ("agents", workspace.agents_dir, workspace.load_agents()),
        ("providers", workspace.providers_dir, workspace.load_providers()),
        ("sweeps", workspace.sweeps_dir, workspace.load_sweeps()),
    )
    for kind, folder, loaded in folders:
        shown = workspace.shown(folder)
        if loaded.items:
            yield Finding(kind, True, ", ".join(loaded.items))
        elif not loaded.problems and kind != "providers":
            yield Finding(kind, False, f"there is no file in {shown}", f"write {shown}/NAME.yaml", required=False)
        yield from (_wrong(kind, problem) for problem in loaded.problems)
    yield from (_wrong("references", problem) for problem in workspace.check_references())
    yield from _keys(workspace)


def _keys(workspace: Workspace) -> Iterator[Finding]:
    """Whether the key of each provider that a live sweep uses is there. Its value is never looked at, nor shown."""
    used = {agent.provider for agent in workspace.agents_of_live_sweeps().values()}
    for name, provider in workspace.load_providers().items.items():
        variable = provider.key_variable
        if name not in used or variable is None:
            continue
        remedy = f"set {variable} where evalpipe runs; it stays out of every file and every container"
        there = bool(os.environ.get(variable, "").strip())
        yield Finding(
            f"key of {name}", there, f"{variable} is {'set' if there else 'not set'}", "" if there else remedy, False
        )


def _wrong(kind: str, problem: Problem) -> Finding:
    return Finding(kind, False, str(problem), f"mend {problem.file}")


def _source(workspace: Workspace, config: RepositoryConfig) -> Finding:
    name = f"source of {config.name}"
    place = workspace.repository_location(config)
    if config.source_is_url:
        return Finding(name, True, f"{place} (a URL: seen when it is mined)")
    file = workspace.shown(workspace.repos_dir / f"{config.name}.yaml")
    remedy = f"set `source` in {file} to a git repository; paths begin at {workspace.root}"
    if not Path(place).is_dir():
        return Finding(name, False, f"there is no folder {place}", remedy)
    fault = _source_fault(Path(place), config.mainline)
    return Finding(name, False, fault, remedy) if fault else Finding(name, True, place)


def _source_fault(place: Path, mainline: str | None) -> str | None:
    """Return why the repository at `place` cannot be mined, or None."""
    from git import Git
    from git.exc import GitCommandError

    # A folder inside another repository, as a workspace often is, must not pass for that one.
    inside = {"GIT_CEILING_DIRECTORIES": str(place.parent)}
    try:
        shallow = str(Git(place).rev_parse("--is-shallow-repository", env=inside))
    except GitCommandError as error:
        reason = re.search(r"fatal: ([^\n]*[^\n'])", str(error.stderr))
        return f"{place}: {reason[1] if reason else 'git cannot read it'}"
    if shallow == "true":
        return f"{place} is a shallow clone; fetch the rest of its history: git -C {place} fetch --unshallow"
    tip = mainline or "HEAD"
    try:
        Git(place).rev_parse("--verify", "--quiet", "--end-of-options", f"{tip}^{{commit}}", env=inside)
    except GitCommandError:
        return f"{place} has no branch {mainline!r}" if mainline else f"{place} has no commit yet"
    return None
