from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalpipe.environments.templates.python_parts import Folder
from evalpipe.environments.templates.python_setuptools import SetuptoolsProject, read_setuptools, version_files
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


def read(files: dict[str, str]) -> SetuptoolsProject:
    return read_setuptools(Folder(MemoryTree(files)))


def test_setup_cfg() -> None:
    found = read(
        {
            "setup.cfg": """\
[metadata]
name = shop
version = attr: shop.__version__
[options]
packages = find:
tests_require = pytest; mock
[options.extras_require]
testing =
    pytest  # the runner
    requests-mock; python_version > "3.8"
""",
            "shop/__init__.py": "",
        }
    )
    assert found.name == "shop"
    assert found.packages
    assert found.extras == {"testing": ("pytest", 'requests-mock; python_version > "3.8"')}
    assert found.paths == ("shop/__init__.py",)


def test_setup_py_is_read_and_never_run() -> None:
    found = read(
        {
            "setup.py": """\
import os, re
import numpy
from setuptools import setup, Extension
from shop import meta
raise SystemExit("never run")
TESTS = ["pytest", "mock"]
extras = {"tests": TESTS, "docs": ["sphinx"], "computed": open("x").read()}
extras["dev"] = TESTS + ["ruff"]
here = os.path.dirname(__file__)
version = re.search("x", open(os.path.join(here, "shop", "version.py")).read())
setup(name="shop", extras_require=extras, tests_require=TESTS, ext_modules=[Extension("a", ["a.c"])],
      long_description=open("README.md").read())
""",
            "shop/version.py": "",
            "README.md": "",
        }
    )
    assert found.name == "shop"
    assert found.extras == {
        "tests": ("pytest", "mock"),
        "docs": ("sphinx",),
        "computed": (),
        "dev": ("pytest", "mock", "ruff"),
    }
    assert found.tests_require == ("pytest", "mock")
    assert found.imports == ("numpy",)
    assert found.extensions
    assert found.paths == ("shop/version.py",)


def test_what_cannot_be_parsed_says_nothing() -> None:
    assert read({"setup.py": "print 'hello'\n"}) == SetuptoolsProject()
    assert read({"setup.cfg": "no section\n"}) == SetuptoolsProject()


def test_files_of_a_version() -> None:
    folder = Folder(MemoryTree({"src/shop/__init__.py": "", "src/shop/v.py": "", "VERSION": ""}))
    assert version_files(folder, "attr: shop.v.VERSION") == ("src/shop/__init__.py", "src/shop/v.py")
    assert version_files(folder, "file: VERSION") == ("VERSION",)
    assert version_files(folder, "1.0") == ()


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_content_can_be_read(config: str, script: str) -> None:
    encodable = [text.encode("utf-8", "replace").decode() for text in (config, script)]
    read({"setup.cfg": encodable[0], "setup.py": encodable[1]})
