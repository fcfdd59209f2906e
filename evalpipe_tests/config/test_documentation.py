from pathlib import Path

import pytest
from pydantic import BaseModel

import evalpipe
from evalpipe.config import AgentConfig, LakeConfig, NetworkConfig, ProviderConfig, RepositoryConfig, SweepConfig
from evalpipe_tests.config.fields import field_names

PAGE = Path(evalpipe.__file__).parents[1] / "docs" / "configuration.md"
SECTIONS = [
    ("data/repos/", RepositoryConfig),
    ("data/agents/", AgentConfig),
    ("data/providers/", ProviderConfig),
    ("data/sweeps/", SweepConfig),
    ("data/lake.yaml", LakeConfig),
    ("data/network.yaml", NetworkConfig),
]


@pytest.mark.parametrize(("folder", "model"), SECTIONS)
def test_the_page_has_a_row_for_every_field_and_no_other(folder: str, model: type[BaseModel]) -> None:
    section = next(part for part in PAGE.read_text().split("\n## ") if folder in part.split("\n")[0])
    rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    # The name is the file's, so it has no row.
    assert rows == [name for name in field_names(model) if name != "name"]
