"""Turns what pydantic found into problems that a user can mend: line, field, what would be right."""

import re
import types
import typing
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evalpipe.config.problems import Problem, did_you_mean, listed
from evalpipe.config.yaml_files import FieldPath, YamlDocument, dotted

# What one value of a field is called, where that is not the field's own name.
_NOUNS = {"name": "runner", "modes": "prompt mode", "weights": "category"}

_TYPES = {
    "tuple_type": "must be a list; write each value on a line of its own after `- `",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "path_type": "must be a path",
    "finite_number": "must be a finite number",
    "dict_type": "must hold `name: value` lines of its own",
}


def explain(error: ValidationError, model: type[BaseModel], document: YamlDocument) -> list[Problem]:
    """Return every problem of a file that was validated against `model`, in the order of its lines."""
    problems: list[Problem] = []
    for details in error.errors(include_url=False):
        path: FieldPath = tuple(part for part in details["loc"] if part != "[key]")
        if details["type"] == "evalpipe_fields":
            found = [((*path, field), message) for field, message in details["ctx"]["faults"]]
        else:
            found = [(path, _message(details, path, model, document))]
        problems.extend(
            Problem(document.name, message, document.line_of(place), dotted(place) or None) for place, message in found
        )
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.field or ""))


def _message(details: ErrorDetails, path: FieldPath, model: type[BaseModel], document: YamlDocument) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "evalpipe":
        return str(context["message"])
    if kind == "extra_forbidden":
        return _unknown_field(str(path[-1]), _fields(model, path[:-1]))
    if kind == "missing":
        return _missing(path, model)
    if value is None:
        return "is empty; give it a value, or remove the line"
    if kind == "literal_error":
        return _unknown_word(value, path, re.findall(r"'([^']*)'", context["expected"]))
    if kind == "string_type":
        return _no_text(value, document.texts.get(path))
    if kind == "model_type":
        return f"must hold fields of its own: {listed(_fields(model, path))}"
    if kind == "too_long":
        return f"must have {context['max_length']} values, not {context['actual_length']}"
    written = document.texts.get(path)
    seen = f", not {written}" if written is not None else ""
    if kind in _TYPES:
        return _TYPES[kind] + (seen if kind != "tuple_type" else "")
    return details["msg"].replace("Input should be", "must be") + seen


def _unknown_field(name: str, known: Sequence[str]) -> str:
    hint = did_you_mean(name, known)
    return f"unknown field{hint}" if hint else f"unknown field; the fields here are: {listed(known)}"


def _missing(path: FieldPath, model: type[BaseModel]) -> str:
    owner = _model_at(model, path[:-1])
    if owner is not None and isinstance(path[-1], str) and path[-1] in owner.model_fields:
        return f"is missing: {owner.model_fields[path[-1]].description}"
    return "is missing; a pair has 2 values"


def _unknown_word(value: object, path: FieldPath, words: Sequence[str]) -> str:
    # A key of a mapping (a category of weights) is no field, so the field before it names the kind.
    fields = [part for part in path if isinstance(part, str)]
    noun = next((_NOUNS[name] for name in reversed(fields) if name in _NOUNS), fields[-1])
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    return f"{value!r} is not a known {noun}; use one of: {listed(words)}{hint}"


def _no_text(value: object, written: str | None) -> str:
    if written is not None:
        return f'must be text; write it in quotes: "{written}"'
    return f"must be text, not {'a list' if isinstance(value, list) else 'fields of its own'}"


def _fields(model: type[BaseModel], path: FieldPath) -> list[str]:
    """Return the fields that may be written below `path`; a file's own name is not one of them."""
    owner = _model_at(model, path)
    if owner is None:
        return []
    return [name for name in owner.model_fields if path or name != "name"]


def _model_at(model: type[BaseModel], path: FieldPath) -> type[BaseModel] | None:
    """Return the model of the fields that stand below `path`, or None when none does."""
    for part in path:
        if not isinstance(part, str) or part not in model.model_fields:
            return None
        inner = _model_in(model.model_fields[part].annotation)
        if inner is None:
            return None
        model = inner
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return next((found for arm in typing.get_args(annotation) if (found := _model_in(arm))), None)
    return None
