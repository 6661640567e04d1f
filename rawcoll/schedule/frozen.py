"""Makes frozen slotted dataclasses cheap to construct.

Owns one decorator. A program of 4,096 ranks is some 50,000 small values, and the constructor that
``dataclass(frozen=True)`` writes takes most of the time of building it: it sets each field by name.
The one written here sets each field through its slot, in half the time; nothing else is changed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


def slot_init(cls: type[_T]) -> type[_T]:
    """Replace the constructor of a frozen slotted dataclass; its fields have no defaults."""
    names = [field.name for field in fields(cast(Any, cls))]
    setters: dict[str, Any] = {f"set_{name}": getattr(cls, name).__set__ for name in names}
    body = "; ".join(f"set_{name}(self, {name})" for name in names)
    exec(f"def __init__(self, {', '.join(names)}): {body}", setters)
    init = setters["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = cls.__init__.__annotations__
    cast(Any, cls).__init__ = init
    return cls
