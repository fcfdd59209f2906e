"""Proxy and mirror as Java's tools read them: options of the virtual machine, Maven's settings, Gradle's script."""

from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import escape

_HOSTS = {"http": 80, "https": 443}


def proxy_options(proxy: str, no_proxy: str | None) -> str:
    """Options for JAVA_TOOL_OPTIONS, which every Java reads.

    https://docs.oracle.com/en/java/javase/21/core/java-networking.html#proxies
    """
    parts = urlsplit(proxy)
    options = []
    for scheme in _HOSTS:
        options.append(f"-D{scheme}.proxyHost={parts.hostname}")
        options.append(f"-D{scheme}.proxyPort={parts.port or _HOSTS[parts.scheme]}")
        if parts.username is not None:
            options.append(f"-D{scheme}.proxyUser={unquote(parts.username)}")
            options.append(f"-D{scheme}.proxyPassword={unquote(parts.password or '')}")
    if parts.username is not None:
        # Java does not offer Basic to a proxy of https unless it is told to.
        options.append("-Djdk.http.auth.tunneling.disabledSchemes=")
    if no_proxy:
        options.append(f"-Dhttp.nonProxyHosts={non_proxy_hosts(no_proxy)}")
    return " ".join(options)


def non_proxy_hosts(no_proxy: str) -> str:
    """A NO_PROXY list in Java's form: `.corp.example` stands for all hosts below."""
    hosts = [host.strip() for host in no_proxy.split(",") if host.strip()]
    return "|".join(f"*{host}" if host.startswith(".") else host for host in hosts)


def maven_settings(mirror: str | None, proxy: str | None, no_proxy: str | None) -> bytes:
    """A settings.xml: https://maven.apache.org/settings.html"""
    parts = []
    if mirror is not None:
        place = urlsplit(mirror)
        url = place._replace(netloc=place.netloc.rpartition("@")[2]).geturl()
        parts.append(
            f"<mirrors><mirror><id>mirror</id><mirrorOf>*</mirrorOf><url>{escape(url)}</url></mirror></mirrors>"
        )
        if place.username is not None:
            parts.append(f"<servers><server><id>mirror</id>{_login(place.username, place.password)}</server></servers>")
    if proxy is not None:
        parts.append(f"<proxies>{''.join(_maven_proxy(proxy, no_proxy, scheme) for scheme in _HOSTS)}</proxies>")
    return f"<settings>{''.join(parts)}</settings>\n".encode()


def _maven_proxy(proxy: str, no_proxy: str | None, protocol: str) -> str:
    parts = urlsplit(proxy)
    login = _login(parts.username, parts.password) if parts.username is not None else ""
    excepted = f"<nonProxyHosts>{escape(non_proxy_hosts(no_proxy))}</nonProxyHosts>" if no_proxy else ""
    return (
        f"<proxy><id>{protocol}</id><active>true</active><protocol>{protocol}</protocol>"
        f"<host>{escape(parts.hostname or '')}</host><port>{parts.port or _HOSTS[parts.scheme]}</port>"
        f"{login}{excepted}</proxy>"
    )


def _login(user: str, password: str | None) -> str:
    secret = escape(unquote(password or ""))
    return f"<username>{escape(unquote(user))}</username><password>{secret}</password>"


def gradle_script(mirror: str) -> bytes:
    """An init script that leaves one repository for everything, plug-ins among it: the mirror.

    https://docs.gradle.org/current/userguide/init_scripts.html
    """
    parts = urlsplit(mirror)
    url = _quoted(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
    settings = [f"url = {url}"]
    if parts.scheme == "http":
        # Older ones do not know it, and do not ask for it.
        settings.append("if (delegate.hasProperty('allowInsecureProtocol')) allowInsecureProtocol = true")
    if parts.username is not None:
        user, password = _quoted(unquote(parts.username)), _quoted(unquote(parts.password or ""))
        settings.append(f"credentials {{ username = {user}; password = {password} }}")
    return f"""def mirrored = {{ repositories ->
    repositories.all {{ one ->
        if (!one.hasProperty('url') || one.url == null || one.url.toString() != {url}) repositories.remove(one)
    }}
    repositories.maven {{ {"; ".join(settings)} }}
}}
gradle.settingsEvaluated {{ settings ->
    if (settings.hasProperty('pluginManagement')) mirrored(settings.pluginManagement.repositories)
    if (settings.hasProperty('dependencyResolutionManagement')) {{
        mirrored(settings.dependencyResolutionManagement.repositories)
    }}
}}
gradle.allprojects {{ project ->
    mirrored(project.buildscript.repositories)
    mirrored(project.repositories)
}}
""".encode()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
