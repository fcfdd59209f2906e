"""The canary of a module in Java, Kotlin or Groovy: a test class of a random name among the module's own tests.

It is written for the framework that these import, in their language, in the first of their packages, and named as
they are (`...Test`, `Test...`, `...Spec`), so that whatever pattern chooses them chooses it as well.
"""

import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalpipe.runners.plan import REPOSITORY_FOLDER

_SOURCES = re.compile(rb"(?:^|/)src/test/(?P<language>java|kotlin|groovy)/(?P<class>.+)\.(?:java|kt|groovy)\Z")
_PACKAGE = re.compile(rb"^\s*package\s+([\w.`]+)", re.MULTILINE)
_NAMED_LIKE_A_TEST = re.compile(r"Test.*|.*(?:Test|Tests|TestCase|Spec)")
_LAST_WORD = re.compile(r".*?([A-Z][a-z]*)")

# By what test sources import, the newest first: a module may hold tests of several, and any engine that runs the
# older ones runs beside it.
_FRAMEWORKS: Mapping[str, re.Pattern[bytes]] = {
    "spock": re.compile(rb"\bspock\.lang\b"),
    "jupiter": re.compile(rb"\borg\.junit\.jupiter\b"),
    "testng": re.compile(rb"\borg\.testng\b"),
    "junit4": re.compile(rb"\borg\.junit\.(?!jupiter|platform)"),
    "junit3": re.compile(rb"\bjunit\.framework\b"),
}
_ANNOTATIONS = {
    "jupiter": "org.junit.jupiter.api.Test",
    "testng": "org.testng.annotations.Test",
    "junit4": "org.junit.Test",
}
_BODIES = {
    "java": 'public class NAME { @ANNOTATION public void METHOD() { throw new AssertionError("fails on purpose"); } }',
    "groovy": 'class NAME { @ANNOTATION void METHOD() { throw new AssertionError("fails on purpose") } }',
    "kotlin": 'class NAME { @ANNOTATION fun METHOD() { throw AssertionError("fails on purpose") } }',
}
_BODIES_BY_CLASS = {
    ("java", "junit3"): "public class NAME extends junit.framework.TestCase { public void METHOD() { fail(); } }",
    ("groovy", "spock"): "class NAME extends spock.lang.Specification { def METHOD() { expect: false } }",
}


@dataclass(frozen=True, slots=True)
class Canary:
    """A test class: where it lies, its content, and its name with its package."""

    path: bytes
    content: bytes
    class_name: str


@dataclass(frozen=True, slots=True)
class JavaSource:
    """A source of tests: its path, and that of its class below `src/test/LANGUAGE`."""

    path: bytes
    language: str
    class_path: bytes


def sources_of_tests(paths: Collection[bytes], module: bytes, modules: Collection[bytes]) -> list[JavaSource]:
    """The sources of tests of `module` and of no module below it, sorted. The top of the tree is the empty folder."""
    found = []
    for path in sorted(paths):
        match = _SOURCES.search(path)
        if match and owner(path, modules) == module:
            found.append(JavaSource(path, match["language"].decode(), match["class"]))
    return found


def owner(path: bytes, modules: Collection[bytes]) -> bytes | None:
    """The innermost of `modules` that a path lies in."""
    while path:
        path = path.rpartition(b"/")[0]
        if path in modules:
            return path
    return None


def chosen_sources(
    files: Iterable[bytes], sources: Mapping[bytes, Sequence[JavaSource]]
) -> dict[bytes, Sequence[JavaSource]]:
    """The chosen classes by module; none for a module of which something else was chosen, which is run whole."""
    found: dict[bytes, list[JavaSource]] = {}
    whole = set()
    for path in files:
        module = owner(path, sources)
        if module is None:
            continue
        of_class = [source for source in sources[module] if source.path == path]
        found.setdefault(module, []).extend(of_class)
        if not of_class:
            whole.add(module)
    return {module: [] if module in whole else classes for module, classes in sorted(found.items())}


def canaries_of(
    tree: Mapping[bytes, bytes], sources: Mapping[bytes, Sequence[JavaSource]], token: str
) -> dict[bytes, Canary]:
    """The canary of each module whose tests are of a framework that is known here."""
    made = {module: _canary(tree, found, token) for module, found in sources.items()}
    return {module: one for module, one in made.items() if one is not None}


def canary_files(canaries: Mapping[bytes, Canary]) -> dict[bytes, bytes]:
    """The files of a plan: the canaries, and the list of their modules that the report repeats."""
    return {
        b"runner/modules": b"".join((module or b".") + b"\n" for module in canaries),
        **{f"{REPOSITORY_FOLDER}/".encode() + one.path: one.content for one in canaries.values()},
    }


def _canary(tree: Mapping[bytes, bytes], sources: Collection[JavaSource], token: str) -> Canary | None:
    for framework, pattern in _FRAMEWORKS.items():
        tests = [one for one in sources if _body(one, framework) and pattern.search(tree[one.path])]
        named = [one for one in tests if _NAMED_LIKE_A_TEST.fullmatch(_simple_name(one))]
        if named or tests:
            return _beside(tree, named or tests, framework, token)
    return None


def _beside(tree: Mapping[bytes, bytes], tests: Collection[JavaSource], framework: str, token: str) -> Canary:
    affixes = Counter(_affixes(_simple_name(test)) for test in tests)
    (prefix, suffix), _ = affixes.most_common(1)[0]
    model = min((test for test in tests if _affixes(_simple_name(test)) == (prefix, suffix)), key=lambda one: one.path)
    name = f"{prefix}A{token}{suffix}"
    declared = _PACKAGE.search(tree[model.path])
    package = declared[1].decode("utf-8", "surrogateescape") if declared else ""
    end = ";" if model.language == "java" else ""
    head = f"package {package}{end}\n" if package else ""
    body = _body(model, framework).replace("NAME", name).replace("METHOD", f"test{secrets.token_hex(4)}")
    folder, _, file = model.path.rpartition(b"/")
    extension = file.rpartition(b".")[2]
    path = folder + b"/" + name.encode() + b"." + extension
    class_name = f"{package.replace('`', '')}.{name}" if package else name
    return Canary(path, f"{head}\n{body}\n".encode("utf-8", "surrogateescape"), class_name)


def _body(source: JavaSource, framework: str) -> str:
    """The class for a framework in the language of a source; nothing where these two do not go together."""
    if framework in _ANNOTATIONS:
        return _BODIES[source.language].replace("ANNOTATION", _ANNOTATIONS[framework])
    return _BODIES_BY_CLASS.get((source.language, framework), "")


def _affixes(name: str) -> tuple[str, str]:
    """How a class is named as a test: what stands before and after."""
    if name.startswith("Test"):
        return "Test", ""
    for suffix in ("TestCase", "Tests", "Test", "Spec"):
        if name.endswith(suffix):
            return "", suffix
    word = _LAST_WORD.fullmatch(name)
    return "", word[1] if word else ""


def _simple_name(source: JavaSource) -> str:
    return source.class_path.rpartition(b"/")[2].decode("utf-8", "backslashreplace")
