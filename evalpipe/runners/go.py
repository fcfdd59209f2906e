"""The go runner: `go test -json` in every module of the tree, whose streams make one report.

The canary is the first test of every package that has tests: what a package says is believed only where it failed. A
product could print all results itself, so it must not find out which test the canary is: it has a name like any other,
and its source is gone before the package's tests run.
Package patterns choose what is run; `-run` among the arguments would leave the canaries out, and nothing be believed.
"""

import os
import re
import secrets
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from evalpipe.runners.go_report import read_report
from evalpipe.runners.plan import REPOSITORY_FOLDER, WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import SuiteReport

# What `./...` leaves out: https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
_LEFT_OUT = re.compile(rb"(?:^|/)(?:vendor|testdata|[_.][^/]*)/")
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PACKAGE = re.compile(rb"\s*package\s+(\w+)")
_IGNORED = re.compile(rb"^//\s*(?:go:build|\+build)\s+ignore\s*$", re.MULTILINE)

# Keeps the first 8 KB of what each test prints, the last 20 events before its failure, and every line that may be a
# result: a suite can print gigabytes, and go writes all of it into its stream.
_FILTER = r"""
{ sub(/^[{]"Time":"[^"]*",/, "{") }
!/^[{]"Action":"output",/ {
    if (sub(/^[{]"Action":"fail",/, "&")) {
        key = $0
        sub(/^[{]"Action":"fail",/, "{\"Action\":\"output\",", key)
        sub(/,"Elapsed":.*/, "", key)
        from = (count[key] > 20) ? count[key] - 20 : 0
        for (n = from; n < count[key]; n++) { print last[key, n % 20]; delete last[key, n % 20] }
    }
    if ($0 !~ /^[{]"Action":"(pause|cont|start)",/) print
    next
}
/,"Output":"=== (RUN|PAUSE|CONT|NAME) / { next }
/--- (PASS|FAIL|SKIP): / { print; next }
{
    key = $0
    sub(/,"Output":.*/, "", key)
    size[key] += length($0)
    if (size[key] <= 8192) print
    else last[key, count[key]++ % 20] = $0
}
"""

# Starts a test binary in the folder of its package. What go generates beside the binary lists the tests as well.
_START = r"""rm -f ./NAME "${1%/*}/_testmain.go"
exec "$@"
"""

# Modules are left out of a workspace now and then, and go refuses to test them while it is in force.
_SCRIPT = r"""top=$(pwd -P) here=$1 token=$2
errors=$here/errors status=$here/status
run() (
    folder=$1
    shift
    cd "$top/$folder" || exit
    printf '\n%s file %s\n' "$token" "$folder"
    case $(go env GOWORK 2>/dev/null) in
        '' | off) ;;
        *) go list -m -f '{{.Dir}}' 2>/dev/null | grep -Fxq "$(pwd -P)" || export GOWORK=off ;;
    esac
    # Quotes are for a path with spaces; before 1.18 go takes them for a part of it.
    case $here in *\ *) start="'$here/start.sh'" ;; *) start=$here/start.sh ;; esac
    { go test -exec "/bin/sh $start" "$@" 2>"$errors"; echo $? >"$status"; } | LC_ALL=C awk -f "$here/filter.awk"
    printf '\n%s file errors\n' "$token"
    head -c 200000 "$errors"
    printf '\n%s file status\n' "$token"
    cat "$status"
)
"""


@dataclass(frozen=True, slots=True)
class GoRunner:
    """Runs go test. `arguments` are added to the command, for example `-tags=integration` or `-race`."""

    arguments: tuple[str, ...] = ()
    name: str = "go"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`. Chosen files stand for their packages, since go runs no less."""
        token, canary = secrets.token_hex(16), _canary_name()
        file = b"0" + secrets.token_hex(8).encode() + b"_test.go"
        report_path = new_report_path("report")
        modules, packages = _modules(tree), _packages_with_tests(tree)
        patterns = {module: ["./..."] for module in modules}
        if request.test_files is not None:
            packages = {folder: packages[folder] for folder in _chosen(request.test_files, packages)}
            patterns = _patterns(packages, modules)
        if not packages:
            lone = _under(modules[0], secrets.token_hex(8).encode())
            packages = {lone: b"canary"}
            patterns = patterns if request.test_files is None else _patterns(packages, modules)
        return TestPlan(
            command=("/bin/sh", f"{root}/runner/go.sh", f"{root}/runner", token, f"{root}/{report_path}"),
            # There is no network: it is better to be told so at once, and by name.
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC", "GOPROXY": "off", "GOTOOLCHAIN": "local"},
            files={
                b"runner/go.sh": _script(self._options(request), patterns),
                b"runner/filter.awk": _FILTER.encode(),
                b"runner/start.sh": _START.encode().replace(b"NAME", file),
                **_canaries(canary, file, packages),
            },
            report_path=report_path,
            canary=canary,
            key=token,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """See `go_report.read_report`; what the script's own exit code says, the report says too."""
        return read_report(report, plan.canary, plan.key)

    def _options(self, request: SuiteRequest) -> list[str]:
        # Results of the cache would be those of another run. What vet finds is no outcome of a test. A box has its own
        # limit: go's, of ten minutes, would fail whatever test runs at that moment.
        options = ["-json", "-count=1", "-vet=off", "-timeout=0"]
        if request.shuffle_seed is not None:
            options.append(f"-shuffle={request.shuffle_seed}")
        return [*options, *self.arguments]


def _script(options: Sequence[str], patterns: Mapping[bytes, Sequence[str]]) -> bytes:
    runs = [
        shlex.join(["run", os.fsdecode(module or b"."), *options, *patterns[module]]) for module in sorted(patterns)
    ]
    lines = ["{", *runs, "printf '\\n%s end 0\\n' \"$token\"", '} >"$3"', ""]
    return _SCRIPT.encode() + os.fsencode("\n".join(lines))


def _modules(tree: SuiteTree) -> list[bytes]:
    """The folders that have a go.mod, the top alone where there is none; sorted."""
    paths = (path for path in tree if not _LEFT_OUT.search(path))
    return sorted(_folder(path) for path in paths if path.rpartition(b"/")[2] == b"go.mod") or [b""]


def _packages_with_tests(tree: SuiteTree) -> dict[bytes, bytes]:
    """The folders with test files, and the package that the canary there belongs to."""
    clauses: dict[bytes, Counter[bytes]] = {}
    tests: dict[bytes, set[bytes]] = {}
    folders = {_folder(path) for path in tree if path.endswith(b"_test.go") and not _LEFT_OUT.search(path)}
    for path in sorted(tree):
        folder = _folder(path)
        if folder not in folders or not path.endswith(b".go") or _IGNORED.search(tree[path]):
            continue
        found = _PACKAGE.match(_COMMENT.sub(b"", tree[path]))
        if found:
            clauses.setdefault(folder, Counter())[found[1].removesuffix(b"_test")] += 1
            if path.endswith(b"_test.go"):
                tests.setdefault(folder, set()).add(found[1])
    packages = {}
    for folder, names in tests.items():
        name = clauses[folder].most_common(1)[0][0]
        # Tests of the package itself come before those of the external package, whatever their files are called.
        packages[folder] = name if name in names or name + b"_test" not in names else name + b"_test"
    return packages


def _chosen(files: Iterable[bytes], packages: Collection[bytes]) -> set[bytes]:
    """The packages with tests that files belong to: those of their own folder, or of the nearest above."""
    found = set()
    for path in files:
        folder = _folder(path)
        while folder and folder not in packages:
            folder = _folder(folder)
        if folder in packages:
            found.add(folder)
    return found


def _patterns(packages: Iterable[bytes], modules: Sequence[bytes]) -> dict[bytes, list[str]]:
    """The package patterns by module, each relative to the folder of its module."""
    patterns: dict[bytes, list[str]] = {}
    for folder in sorted(packages):
        module = folder
        while module and module not in modules:
            module = _folder(module)
        inner = folder[len(module) :].lstrip(b"/")
        patterns.setdefault(module, []).append("./" + os.fsdecode(inner))
    return patterns


def _canary_name() -> str:
    return "Test" + "".join(secrets.choice(ascii_lowercase) for _ in range(12)).capitalize()


def _canaries(name: str, file: bytes, packages: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """A test that fails for each package, in a file that comes before all others."""
    body = f'\n\nimport "testing"\n\nfunc {name}(t *testing.T) {{ t.Fail() }}\n'.encode()
    return {
        _under(REPOSITORY_FOLDER.encode(), _under(folder, file)): b"package " + package + body
        for folder, package in packages.items()
    }


def _folder(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _under(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name
