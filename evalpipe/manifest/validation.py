"""Checks a manifest: against its JSON Schema, and for what a schema cannot say."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

SCHEMA_VERSION = 1


class ManifestError(Exception):
    """A manifest is not valid. `problems` holds each as `JSON path: message`; the text has one a line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems: tuple[str, ...] = tuple(problems)
        super().__init__("\n".join(self.problems))


def validate_manifest(document: Any) -> None:
    """Check a manifest as JSON. Raises ManifestError with every problem."""
    errors = sorted(_validator().iter_errors(document), key=lambda error: (error.json_path, error.message))
    problems = [f"{error.json_path}: {error.message}" for error in errors]
    # The numbers can only be compared once they are numbers.
    problems = problems or list(_disagreements(document))
    if problems:
        raise ManifestError(problems)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of manifests."""
    text = (files("evalpipe.manifest") / "schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def combined_image_digest(digests: Iterable[str]) -> str:
    """Return the digest of the one image, or for several `sha256:` over their sorted digests, one a line."""
    ordered = sorted(set(digests))
    if not ordered:
        raise ManifestError(["$.environment.images: there is no image"])
    if len(ordered) == 1:
        return ordered[0]
    return "sha256:" + hashlib.sha256("".join(f"{digest}\n" for digest in ordered).encode()).hexdigest()


def _disagreements(document: dict[str, Any]) -> Iterator[str]:
    images: dict[str, int] = document["environment"]["images"]
    tasks = document["task_set"]["task_count"]
    if sum(images.values()) != tasks:
        yield f"$.environment.images: the counts add up to {sum(images.values())}, but there are {tasks} tasks"
    unknown = sorted(document.get("probe", {}).keys() ^ images.keys()) if "probe" in document else []
    if unknown:
        yield f"$.probe: its images are not those of the environment: {', '.join(unknown)}"
    expected = combined_image_digest(images)
    if document["environment"]["image_digest"] != expected:
        yield f"$.environment.image_digest: is not the digest of the images, {expected}"


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema(), format_checker=_format_checker())


def _format_checker() -> FormatChecker:
    # jsonschema checks date-time only with an optional package, and without it says nothing.
    checker = FormatChecker(formats=())
    checker.checks("date-time")(_is_moment)
    return checker


def _is_moment(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return False
    return moment.tzinfo is not None and "T" in value
