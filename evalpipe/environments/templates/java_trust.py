"""Lets Java trust what the machine trusts: it has a store of its own and reads no bundle of certificates."""

from importlib import resources

from evalpipe.environments.recipe import BUILD_FOLDER

_PROGRAM = f"{BUILD_FOLDER}/TrustStore.java"
_STORE = "/tmp/trust.p12"
_OPTIONS = f"-Djavax.net.ssl.trustStore={_STORE} -Djavax.net.ssl.trustStorePassword=changeit"


def trust_files() -> dict[str, bytes]:
    """The program that `trust_script` runs, for `Recipe.files`."""
    program = resources.files("evalpipe.environments.templates").joinpath("inside", "TrustStore.java")
    return {_PROGRAM: program.read_bytes()}


def trust_script(variable: str) -> str:
    """Shell lines that add what Java needs to a variable of options, where the build has a bundle of its own.

    The store lies in a folder that no image keeps.
    """
    return f"""if [ -n "${{SSL_CERT_FILE:-}}" ]; then
    java {_PROGRAM} "$SSL_CERT_FILE" {_STORE}
    export {variable}="${{{variable}:-}} {_OPTIONS}"
fi"""
