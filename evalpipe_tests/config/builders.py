"""Makes small workspaces for the tests of the configuration."""

from pathlib import Path

from evalpipe.config import Workspace

REPOSITORY = "source: ../shop\nrunner:\n  name: pytest\n"
SCRIPTED = 'adapter: scripted\nmodel: m\nmodel_version: "1.10"\nscaffold: s\nscaffold_version: "2"\nscript: patches\n'
SWEEP = "task_set: t\nagents: [empty, reference]\nsamples: 2\ndecision: whether to go on\n"


def make_workspace(root: Path) -> Workspace:
    for name in ("repos", "agents", "sweeps"):
        (root / "data" / name).mkdir(parents=True)
    (root / "workspace.yaml").touch()
    return Workspace(root.resolve())
