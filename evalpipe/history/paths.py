"""What a file is for, told by its path: a test, product source, documentation, a dependency manifest, or generated.

Rules look at whole path components and file names, never at parts of words: `src/latest.py` and `contest/`
are no tests. A team's own globs go before the default rules. Paths are bytes and need not be UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import cached_property
from itertools import pairwise
from typing import Final


class FileKind(StrEnum):
    """What a file is for."""

    test = auto()
    """A test, or anything that only tests use."""
    source = auto()
    """Source code of the product."""
    docs = auto()
    """Documentation, changelogs and examples."""
    dependency = auto()
    """A dependency manifest or a lock file."""
    generated = auto()
    """Made by a tool, or a copy of somebody else's code."""
    other = auto()
    """Configuration, scripts of the project itself, data."""

    # Enum's own hash is slow Python, and every file of every change is sorted by its kind.
    __hash__ = str.__hash__


_SOURCE_EXTENSIONS: Final = frozenset(
    b"py pyi pyx pxd go rs js jsx mjs cjs ts tsx mts cts vue svelte java kt kts cs rb rake php phtml "
    b"c h cc cpp cxx c++ hh hpp hxx h++ ipp inl s asm "
    # Grammars that become code at build time, and jq's own language.
    b"y yy ypp l ll lpp g4 re2c peg pest lalrpop jj jjt jq".split()
)
# Folders named `spec` hold tests in these languages; elsewhere a specification.
_SPEC_FOLDER_EXTENSIONS: Final = frozenset(b"rb js jsx mjs cjs ts tsx php".split())
_DOCS_EXTENSIONS: Final = frozenset(b"md markdown mdx rst adoc asciidoc org textile rdoc pod tex".split())

_GENERATED_FOLDERS: Final = frozenset(
    b"vendor vendored _vendor third_party third-party thirdparty node_modules bower_components __generated__ "
    b"site-packages .yarn".split()
)
# What bundlers and compilers leave in a `dist` that is committed.
_BUILT_EXTENSIONS: Final = frozenset(b"js mjs cjs css map".split())
_TEST_FOLDERS: Final = frozenset(
    b"test tests __tests__ __mocks__ __snapshots__ __image_snapshots__ __fixtures__ testdata test-data test_data "
    b"testfixtures testsuite testsuites selftest selftests androidtest e2e cypress step_definitions".split()
)
# Behind a folder named `spec` these hold what its tests use, in any language.
_SPEC_HELPERS: Final = frozenset(b"fixtures support factories cassettes".split())
_DOCS_FOLDERS: Final = frozenset(b"docs doc documentation examples example".split())
_CHANGELOG_FOLDERS: Final = frozenset(
    b"changelog changelogs changelog.d changes changes.d .changes news newsfragments releasenotes .changeset".split()
)
# Scripts that serve the project and are no product; only at the root of the repository.
_TOOLING_FOLDERS: Final = frozenset(
    b"scripts script tools tool ci build build_tools perf performance devtools etc misc fuzz".split()
)
# Measurements and scratch files are no product wherever they stand.
_BENCH_FOLDERS: Final = frozenset(b"bench benches benchmark benchmarks jmh".split())
_SCRATCH_NAME: Final = re.compile(
    rb"(?:(?:play|playground|scratch|sandbox)|.*\.(?:bench|benchmark|story|stories))\.[cm]?[jt]sx?\Z"
    rb"|.*Benchmarks?\.(?:java|kt|cs)\Z"
)
_TOOLING_NAMES: Final = frozenset(
    b"noxfile.py tasks.py fabfile.py dodo.py manage.py versioneer.py conanfile.py dangerfile.js gulpfile.js "
    b"gruntfile.js rakefile build.rs build.gradle.kts settings.gradle.kts".split()
)

_GENERATED_NAME: Final = re.compile(
    rb"(?i)(?:.*\.min\.(?:js|css)|.*_pb2(?:_grpc)?\.pyi?|.*\.pb(?:\.gw)?\.(?:go|cc|h)|.*\.g\.(?:cs|dart)"
    rb"|.*\.designer\.cs|.*[._-]generated\.\w+|zz_generated\..*|.*\.bundle\.js|.*\.js\.map)\Z"
)
_DEPENDENCY_NAME: Final = re.compile(
    rb"(?i)(?:(?:[\w.-]*[-_.])?requirements(?:[-_.][\w.-]*)?\.(?:txt|in)|constraints(?:[-_.][\w.-]*)?\.txt"
    rb"|pyproject\.toml|setup\.(?:py|cfg)|pipfile(?:\.lock)?|poetry\.lock|uv\.lock|pdm\.lock|pylock(?:\.[\w-]+)?\.toml"
    rb"|environment(?:[-_.][\w.-]*)?\.ya?ml|conda-lock\.yml"
    rb"|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|pnpm-workspace\.yaml|bun\.lockb?"
    rb"|go\.(?:mod|sum|work|work\.sum)|cargo\.(?:toml|lock)"
    rb"|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradle\.lockfile|libs\.versions\.toml|gradle-wrapper\.properties"
    rb"|.*\.(?:cs|fs|vb)proj|packages\.config|packages\.lock\.json|directory\.packages\.props|paket\.(?:dependencies|lock)"
    rb"|gemfile(?:\.lock)?|.*\.gemspec|composer\.(?:json|lock)|conanfile\.(?:txt|py)|vcpkg\.json)\Z"
)
# Without regard to case only where a language has no case rule: `Latest.java` and `Contest.java` are no
# tests.
_TEST_NAME: Final = re.compile(
    rb"(?:(?:test_.*|.*_tests?|tests?|conftest)\.(?:py|pyi|pyx)"
    rb"|.*_test\.go|(?:mock_.*|.*_mock)\.go"
    rb"|(?:test_.*|.*_tests?|tests?)\.rs"
    rb"|.*[._-](?:test|tests|spec|specs|test-d|cy|e2e)\.[cm]?[jt]sx?|(?:test-.*|tests?)\.[cm]?[jt]sx?"
    rb"|(?:.*(?:Test|Tests|TestCase|IT|Spec)|Test[A-Z0-9].*)\.(?:java|kt|kts|cs|php)"
    rb"|.*_(?:spec|test)\.rb|.*\.feature|.*\.phpt"
    rb"|(?:test[-_].*|.*[-_.](?:test|tests|unittest)|.*[a-z0-9]Tests?)\.(?:c|cc|cpp|cxx|h|hh|hpp)"
    # What tests compare with: Jest's, insta's, syrupy's and others' snapshots.
    rb"|.*\.(?:snap|ambr)|.*\.(?:approved|verified)\.(?:txt|json|xml|csv|cs))\Z"
)
_TEST_FOLDER: Final = re.compile(
    rb"(?i)(?:.*\.(?:tests?|unittests?|integrationtests?|functionaltests?|specs))\Z|(?-i:[a-z]+Test|[A-Z]\w*Tests)\Z"
    rb"|(?:unit|functional|integration|acceptance|smoke|regression|system|e2e|end[-_]to[-_]end|ui)(?:[-_]tests?|tests)\Z"
    rb"|(?-i:.*\.(?:[A-Z]\w*Tests|Test(?:Helpers?|Util(?:s|ities)?|Common|Support))\Z)"
)
# Modules of a repository that hold nothing but tests; further down such names are packages with an audience.
_TEST_MODULE: Final = re.compile(rb"tests?-[\w-]+|[\w-]+-tests|tests?_(?:utils?|helpers?|support|cases)|fixtures")
_JVM_EXTENSIONS: Final = (b"java", b"kt", b"kts")
# Maven's, Gradle's and Kotlin's folders (`src/main`, `src/commonMain`) for what a module ships.
_JVM_MAIN: Final = re.compile(rb"main|[a-z]\w*Main")
# Programs of a .NET solution that try the product out.
_TRIAL_PROJECT: Final = re.compile(rb".*\.(?:TestConsole|TestApp|Benchmarks?)\Z")
# Says who made an assembly and of which version it is.
_METADATA: Final = re.compile(rb"(?:\w+\.)*\w*Assembly(?:Info|Version)\.cs\Z")
_README: Final = re.compile(rb"(?i)(?:readme|contributing|license|licence|authors|copying|notice)(?:\..*)?\Z")
_CHANGELOG: Final = re.compile(
    rb"(?i)(?:changelog|change_log|changes|history|news|releases|release[-_]?notes|whats[-_]?new)"
    rb"(?:\.(?:md|markdown|rst|txt|adoc|org))?\Z"
)
_FRAGMENT: Final = re.compile(rb"(?:gh-?|#)?(\d{1,7})\.[\w.+-]+\Z")

_STEERING_NAME: Final = re.compile(
    rb"(?i)(?:conftest\.py|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.(?:cfg|py)|pyproject\.toml|noxfile\.py"
    rb"|sitecustomize\.py|usercustomize\.py|.*\.pth|pytest\.py|_pytest|\.coveragerc|makefile|gnumakefile|justfile"
    rb"|entry_points\.txt|pytest_plugins\.py|(?:nose2?|unittest)\.cfg|\.noserc|\.env(?:\.test)?"
    rb"|(?:jest|vitest|vite|karma|ava|playwright|cypress|wdio|babel|protractor)"
    rb"\.(?:config|conf|setup|workspace|projects)\.(?:[cm]?[jt]s|json)"
    rb"|\.babelrc(?:\..*)?|jest\.setup\.\w+|jest-preset\.\w+|\.mocharc(?:\..*)?|mocha\.opts|\.taprc|\.nycrc(?:\..*)?"
    rb"|package\.json|[jt]sconfig(?:\.[\w-]+)?\.json|\.npmrc|\.swcrc|\.pnp(?:\.loader)?\.[cm]js|\.yarnrc(?:\.yml)?"
    rb"|.*\.gradle(?:\.kts)?|pom\.xml|gradle\.(?:properties|lockfile)|libs\.versions\.toml|junit-platform\.properties"
    rb"|.*\.runsettings|xunit\.runner\.json|directory\.build\.(?:props|targets)|.*\.csproj|nuget\.config"
    rb"|\.rspec|rakefile|\.simplecov|spec_helper\.rb|test_helper\.rb|phpunit\.xml(?:\.dist)?|composer\.json|codeception\.yml"
    rb"|build\.rs|cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|nextest\.toml|ctestconfig\.cmake|cmakelists\.txt"
    rb"|go\.(?:mod|work|sum|work\.sum)|(?:package-lock|npm-shrinkwrap)\.json|yarn\.lock|pnpm-(?:lock|workspace)\.yaml)\Z"
)
_STEERING_FOLDER: Final = re.compile(
    rb"(?i)(?:.*\.(?:dist-info|egg-info)|\.cargo|\.config|\.mvn|\.yarn|buildsrc|build-logic)\Z"
)
# By which a JVM finds listeners, filters and engines of tests on its class path.
_TEST_SERVICE: Final = re.compile(
    rb"(?:.*/)?META-INF/services/(?:org\.(?:junit|testng|spockframework|apache\.maven)|junit|io\.kotest)\.", re.DOTALL
)
# Copies of the libraries that tests may take their assertions from; a domain may have vendors in a `vendor` of its own.
_DEPENDENCY_COPY: Final = re.compile(
    rb"(?:.*/)?(?:(?:node_modules|site-packages)/.+|vendor/(?:modules\.txt\Z|[a-z0-9-]+\.[a-z]+/.+))", re.DOTALL
)


_REMEMBERED: Final = 1 << 16


@dataclass(frozen=True)
class PathRules:
    """Tells what files are for; the globs of each kind go before the default rules, generated first.

    In a glob `*` and `?` stay inside one component and `**` spans any number of them; a glob without a slash
    is compared with the file's name alone. Raises ValueError for an empty glob.
    """

    test_globs: tuple[str, ...] = ()
    source_globs: tuple[str, ...] = ()
    generated_globs: tuple[str, ...] = ()

    @cached_property
    def _overrides(self) -> list[tuple[FileKind, re.Pattern[bytes]]]:
        globs = (
            (FileKind.generated, self.generated_globs),
            (FileKind.test, self.test_globs),
            (FileKind.source, self.source_globs),
        )
        return [(kind, compiled_globs(patterns)) for kind, patterns in globs if patterns]

    @cached_property
    def kinds(self) -> Mapping[bytes, FileKind]:
        """What every path is for; a history names the same paths again and again, so answers are remembered."""
        return _KindsByPath(self._overrides)

    def kind_of(self, path: bytes) -> FileKind:
        """What the file at this path is for."""
        return self.kinds[path]


class _KindsByPath(dict[bytes, FileKind]):
    def __init__(self, overrides: Sequence[tuple[FileKind, re.Pattern[bytes]]]) -> None:
        super().__init__()
        self._overrides = overrides

    def __missing__(self, path: bytes) -> FileKind:
        if len(self) >= _REMEMBERED:
            self.clear()
        said = next((kind for kind, pattern in self._overrides if pattern.match(path)), None)
        self[path] = kind = said or default_kind(path)
        return kind


def default_kind(path: bytes) -> FileKind:
    """What a file is for by the default rules of all languages, first match wins."""
    *folders, name = path.split(b"/")
    extension = name.rpartition(b".")[2].lower() if b"." in name.lstrip(b".") else b""
    telling = _without_packages_of_main(folders) if extension in _JVM_EXTENSIONS else folders
    is_of_main = len(telling) < len(folders)
    lowered = [folder.lower() for folder in telling]
    vendored = next((place for place, folder in enumerate(lowered) if folder in _GENERATED_FOLDERS), None)
    is_built = b"dist" in lowered and extension in _BUILT_EXTENSIONS
    is_generated = vendored is not None or is_built or _GENERATED_NAME.match(name)
    # A copy among the tests is what they work on.
    if is_generated and not any(folder in _TEST_FOLDERS for folder in lowered[:vendored]):
        return FileKind.generated
    is_manifest = _DEPENDENCY_NAME.match(name) or (b"requirements" in lowered and extension in (b"txt", b"in"))
    if is_manifest and not any(folder in _TEST_FOLDERS for folder in lowered):
        return FileKind.dependency
    if _README.match(name) or is_changelog(path):
        return FileKind.docs
    if _METADATA.match(name):
        return FileKind.other
    is_documented = bool(lowered) and lowered[0] in _DOCS_FOLDERS
    has_test_name = not is_of_main and _TEST_NAME.match(name) is not None
    if not is_documented and (has_test_name or _is_among_tests(telling, lowered, extension)):
        return FileKind.test
    if extension in _DOCS_EXTENSIONS or any(folder in _DOCS_FOLDERS for folder in lowered) or b"examples" in folders:
        return FileKind.docs
    if extension not in _SOURCE_EXTENSIONS or name.lower() in _TOOLING_NAMES:
        return FileKind.other
    if any(folder.startswith(b".") or folder in _BENCH_FOLDERS for folder in lowered) or any(
        map(_TRIAL_PROJECT.match, telling)
    ):
        return FileKind.other
    if (lowered and lowered[0] in _TOOLING_FOLDERS) or _SCRATCH_NAME.match(name):
        return FileKind.other
    return FileKind.source


def _is_among_tests(folders: list[bytes], lowered: list[bytes], extension: bytes) -> bool:
    if any(folder in _TEST_FOLDERS for folder in lowered) or any(map(_TEST_FOLDER.match, folders)):
        return True
    pairs = list(pairwise(lowered))
    if any(outer in (b"spec", b"specs") and inner in _SPEC_HELPERS for outer, inner in pairs):
        return True
    if extension in _SPEC_FOLDER_EXTENSIONS and any(folder in (b"spec", b"specs") for folder in lowered):
        return True
    # Maven's place for the projects that try a plugin out.
    if extension in _JVM_EXTENSIONS and (b"src", b"it") in pairs:
        return True
    if extension == b"go" and (b"mocks" in lowered or _is_internal_test_package(folders)):
        return True
    return bool(lowered) and _is_root_of_tests(lowered[0], extension)


def _is_root_of_tests(folder: bytes, extension: bytes) -> bool:
    """Whether a folder at the root of the repository holds tests; further down its name says less."""
    # `testing` is often a public package (numpy.testing).
    if folder == b"testing" or (folder == b"t" and extension == b"t") or (folder == b"features" and extension == b"rb"):
        return True
    return _TEST_MODULE.fullmatch(folder) is not None


def _is_internal_test_package(folders: list[bytes]) -> bool:
    """Go: `internal/testenv`, and `x/internal/xtest`, which helps to test `x`."""
    if b"internal" not in folders:
        return False
    within = folders.index(b"internal") + 1
    outer = set(folders[:within])
    return any(
        folder.startswith(b"test") or (folder.endswith(b"test") and folder[:-4] in outer) for folder in folders[within:]
    )


def _without_packages_of_main(folders: list[bytes]) -> list[bytes]:
    """The folders down to `src/main`: packages of what a module ships may be called `com.example.test` or `vendor`."""
    for place, (outer, inner) in enumerate(pairwise(folders)):
        if outer == b"src" and _JVM_MAIN.fullmatch(inner):
            return folders[: place + 2]
    return folders


def is_changelog(path: bytes) -> bool:
    """Whether the file tells users what changed: a changelog, or a fragment that will become part of one."""
    *folders, name = path.split(b"/")
    if _CHANGELOG.match(name):
        return True
    return bool(folders) and folders[-1].lower() in _CHANGELOG_FOLDERS and not name.endswith((b".py", b".toml"))


def fragment_number(path: bytes) -> int | None:
    """The issue that a changelog fragment is named after (`changelog/123.bugfix.rst`)."""
    folder, _, name = path.rpartition(b"/")
    if folder.rpartition(b"/")[2].lower() not in _CHANGELOG_FOLDERS:
        return None
    found = _FRAGMENT.match(name)
    return int(found.group(1)) if found else None


def steers_tests(path: bytes) -> bool:
    """Whether a file can steer a test run without being a test.

    Configuration, plug-ins, start-up hooks, builds, and copies of the libraries that tests use.
    """
    *folders, name = path.split(b"/")
    return (
        _STEERING_NAME.match(name) is not None
        or any(map(_STEERING_FOLDER.match, folders))
        or _DEPENDENCY_COPY.match(path) is not None
        or _TEST_SERVICE.match(path) is not None
    )


def compiled_globs(globs: Iterable[str]) -> re.Pattern[bytes]:
    """A pattern that matches the paths that any of `globs` names, by the rules of `PathRules`. Raises ValueError."""
    return re.compile(b"(?s:" + b"|".join(map(_translated, globs)) + b")\\Z")


def _translated(glob: str) -> bytes:
    pattern = glob.encode("utf-8", "surrogateescape").strip(b"/") if glob.strip("/") else b""
    if not pattern:
        raise ValueError(f"{glob!r} is not a glob: it names nothing")
    if b"/" not in pattern and b"**" not in pattern:
        pattern = b"**/" + pattern
    expression = re.escape(pattern)
    for escaped, meaning in (
        (rb"\*\*/", b"(?:.*/)?"),
        (rb"/\*\*", b"/.*"),
        (rb"\*\*", b".*"),
        (rb"\*", b"[^/]*"),
        (rb"\?", b"[^/]"),
    ):
        expression = expression.replace(escaped, meaning)
    return expression
