"""Templates by the names that configuration files give them."""

from evalpipe.environments.recipe import Template
from evalpipe.environments.templates.go import GoTemplate
from evalpipe.environments.templates.gradle import GradleTemplate
from evalpipe.environments.templates.maven import MavenTemplate
from evalpipe.environments.templates.node import NodeTemplate
from evalpipe.environments.templates.packages import PackagesTemplate
from evalpipe.environments.templates.python import PythonTemplate
from evalpipe.environments.templates.rust import RustTemplate

TEMPLATES: dict[str, Template] = {
    template.name: template
    for template in (
        PythonTemplate(),
        PackagesTemplate(),
        GoTemplate(),
        RustTemplate(),
        NodeTemplate(),
        MavenTemplate(),
        GradleTemplate(),
    )
}
"""Every template that makes a recipe. `dockerfile` and `image` have none: the team brings the result."""
