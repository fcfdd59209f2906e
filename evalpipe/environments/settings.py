"""What this machine's builds are told about the network: the certificate authority that its tools trust."""

import os
from pathlib import Path

from evalpipe.environments.build import SETTINGS_FOLDER, BuildSettings

BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_TRUST_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


def host_settings() -> BuildSettings:
    """The CA bundle that this host was told to trust, for hosts behind a proxy with an authority of its own."""
    for variable in BUNDLE_VARIABLES:
        path = os.environ.get(variable)
        if path and Path(path).is_file():
            inside = f"{SETTINGS_FOLDER}/ca-certificates.crt"
            return BuildSettings(
                dict.fromkeys(_TRUST_VARIABLES, inside), {"ca-certificates.crt": Path(path).read_bytes()}
            )
    return BuildSettings()
