"""Builds the image of a team's own Dockerfile. It gets the machine's proxy, and all else by its own means."""

import io
import tarfile
from collections.abc import Mapping

from docker.errors import APIError, BuildError

from evalpipe.environments.build import BuildSettings, BuildStatus, log_end
from evalpipe.environments.build_container import build_network
from evalpipe.environments.recipe_build import BuildResult, failure
from evalpipe.environments.sources import DockerfileSource
from evalpipe.sandbox.engine import Engine


def build_dockerfile(
    engine: Engine, source: DockerfileSource, tag: str, labels: Mapping[str, str], settings: BuildSettings
) -> BuildResult:
    """Build the image and tag it. Raises EngineUnavailable."""
    network = build_network(engine)
    try:
        image, _ = engine.client.images.build(
            fileobj=_context(source.context),
            custom_context=True,
            dockerfile=source.dockerfile,
            tag=tag,
            labels=dict(labels),
            # Docker knows these arguments by name and leaves them out of an image's history.
            buildargs={name: value for name, value in settings.env.items() if name.lower().endswith("_proxy")},
            network_mode=network,
            rm=True,
            forcerm=True,
        )
    except BuildError as error:
        parts = [str(part.get("stream") or part.get("error") or "") for part in error.build_log]
        return failure(log_end("".join(parts).encode(), settings, last=str(error.msg)))
    except APIError as error:
        return failure(log_end(str(error.explanation).encode(), settings))
    return BuildResult(BuildStatus.BUILT, str(image.id))


def _context(files: Mapping[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer
