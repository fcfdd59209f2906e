"""Templates by the names that configuration files give them."""

from evalpipe.environments.recipe import Template
from evalpipe.environments.templates.packages import PackagesTemplate
from evalpipe.environments.templates.python import PythonTemplate

TEMPLATES: dict[str, Template] = {template.name: template for template in (PythonTemplate(), PackagesTemplate())}
"""Every template that makes a recipe. `dockerfile` and `image` have none: the team brings the result."""
