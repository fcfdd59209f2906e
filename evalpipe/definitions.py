"""What Dagster loads: the Definitions of the workspace that it is started in."""

from evalpipe.config import find_workspace
from evalpipe.pipeline.assembly import build_definitions

defs = build_definitions(find_workspace())
