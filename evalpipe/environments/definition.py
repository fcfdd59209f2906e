"""What an environment is made from, and the key under which candidates share one."""

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentDefinition:
    """Everything that decides an environment.

    `base` is an image reference (the host's Python for the process sandbox), `packages` are pip requirements,
    `setup` shell commands run as root while the environment is built. With `image` the team brings an image of
    its own and nothing is built.
    """

    sandbox: str
    base: str
    image: str | None = None
    packages: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()

    def build_key(self, base_digest: str) -> str:
        """SHA-256 (hex) of what decides the result: the base's content, not its name, and the definition."""
        content = {
            "template": TEMPLATE_VERSION,
            "sandbox": self.sandbox,
            "base": base_digest,
            "image": self.image,
            "packages": self.packages,
            "setup": self.setup,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def dockerfile(self, base: str, *, certificates: bool) -> str:
        """The Dockerfile of this definition on the image `base`.

        `certificates` when the build context holds the host's CA bundle, which only the build steps then trust.
        """
        lines = [f"FROM {base}", "USER root"]
        trust = ""
        if certificates:
            lines.append("COPY ca-certificates.crt /opt/evalpipe/ca-certificates.crt")
            trust = " ".join(f"{name}=/opt/evalpipe/ca-certificates.crt" for name in _TRUST_VARIABLES) + " "
        if self.packages:
            # The base's own packages stay visible, so a base that brings pytest needs nothing here.
            lines.append("RUN python3 -m venv --system-site-packages /opt/evalpipe/venv")
            lines.append("ENV PATH=/opt/evalpipe/venv/bin:$PATH")
            lines.append(f"RUN {trust}{_pip_install('/opt/evalpipe/venv/bin/python', self.packages)}")
        exports = f"export {trust}\n" if trust else ""
        # The exec form carries a command of several lines as it is.
        lines.extend(f"RUN {json.dumps(['/bin/sh', '-ec', exports + command])}" for command in self.setup)
        lines += ["RUN mkdir -p /work && chmod 0777 /work", "USER 1000:1000", "WORKDIR /work"]
        return "\n".join(lines) + "\n"


TEMPLATE_VERSION = 1
_TRUST_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


def pip_arguments(packages: tuple[str, ...]) -> list[str]:
    """Arguments of `python -m pip` that install `packages` and nothing that was not asked for."""
    return [
        "install",
        "--no-input",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--quiet",
        "--",
        *packages,
    ]


def _pip_install(python: str, packages: tuple[str, ...]) -> str:
    quoted = " ".join("'" + argument.replace("'", "'\\''") + "'" for argument in pip_arguments(packages))
    return f"{python} -m pip {quoted}"
