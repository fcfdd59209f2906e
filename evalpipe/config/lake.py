"""`data/lake.yaml`: where the lake of a workspace is, when it is not in the folder data/lake alone."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError

from evalpipe.config.explain import explain
from evalpipe.config.problems import ConfigError
from evalpipe.config.values import ConfigModel, Text, wrong
from evalpipe.config.workspace import Workspace
from evalpipe.config.yaml_files import read_yaml


def _check_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("s3", "gs") or not parts.netloc or parts.query or parts.fragment:
        raise wrong("is no place for a lake; write it as s3://bucket/folder or gs://bucket/folder")
    if "@" in parts.netloc:
        raise wrong("holds a login; credentials come from the environment, as those of the provider's own tools")
    return value


class LakeConfig(ConfigModel):
    """An object store that has the lake. Credentials, region and endpoint come from the environment."""

    url: Annotated[Text, AfterValidator(_check_url)] | None = Field(
        default=None, description="bucket and folder of the lake, as s3://bucket/folder or gs://bucket/folder"
    )


def load_lake(workspace: Workspace) -> LakeConfig:
    """Load `data/lake.yaml`; without one the lake is in data/lake alone. Raises ConfigError."""
    path = workspace.data / "lake.yaml"
    if not path.exists():
        return LakeConfig()
    document = read_yaml(path, workspace.shown(path))
    try:
        return LakeConfig.model_validate(document.value)
    except ValidationError as error:
        raise ConfigError(explain(error, LakeConfig, document)) from error
