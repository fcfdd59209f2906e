"""The dotted names of every field of a configuration model, for the tests that hold pages and examples to them."""

import types
import typing
from typing import Any

from pydantic import BaseModel


def field_names(model: type[BaseModel]) -> list[str]:
    names: list[str] = []
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        names.extend([f"{name}.{below}" for below in field_names(inner)] if inner else [name])
    return names


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, types.UnionType):
        return next((model for arm in typing.get_args(annotation) if (model := _model_of(arm))), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
