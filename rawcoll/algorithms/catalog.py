"""The catalogue: from names and texts to algorithms.

Owns the names and the notation that ``base.text`` writes. A text is a name, a name with parameters
(``ring(segments=4,order=0-2-1-3)``), or where to import from (``./mine.py:swing``,
``package.module:swing``).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from rawcoll.algorithms.base import Algorithm, parameters_of
from rawcoll.algorithms.binomial import Binomial
from rawcoll.algorithms.builtin import Builtin
from rawcoll.algorithms.direct import Direct
from rawcoll.algorithms.doubling import Doubling
from rawcoll.algorithms.function import FunctionAlgorithm, function_name
from rawcoll.algorithms.gather_reduce import GatherReduce
from rawcoll.algorithms.halving import Halving
from rawcoll.algorithms.hierarchical import Hierarchical
from rawcoll.algorithms.ring import Ring
from rawcoll.algorithms.tree import Tree
from rawcoll.algorithms.two_shot import TwoShot
from rawcoll.errors import InvalidArgument, unknown_name
from rawcoll.schedule.collectives import collective_of

ALGORITHMS: Final[dict[str, Callable[..., Algorithm]]] = {
    "ring": Ring,
    "tree": Tree,
    "halving": Halving,
    "doubling": Doubling,
    "direct": Direct,
    "two_shot": TwoShot,
    "gather_reduce": GatherReduce,
    "binomial": Binomial,
    "hierarchical": Hierarchical,
    "builtin": Builtin,
}
"""The built-in algorithms, by name."""


def names_for(collective: str) -> tuple[str, ...]:
    """The names of the built-in algorithms that offer a collective."""
    name = collective_of(collective).name
    return tuple(known for known, kind in ALGORITHMS.items() if name in _offered(kind))


def _offered(kind: Callable[..., Algorithm]) -> frozenset[str]:
    offered: frozenset[str] = getattr(kind, "collectives")  # noqa: B009
    return offered


def is_built_in(algorithm: Algorithm) -> bool:
    """Whether an algorithm is made of the catalogue's classes only, those inside it included."""
    if type(algorithm) not in ALGORITHMS.values():
        return False
    inner = (value for _, value in parameters_of(algorithm) if isinstance(value, Algorithm))
    return all(map(is_built_in, inner))


def algorithm_from(value: str | Algorithm | Callable[..., Any]) -> Algorithm:
    """The algorithm that a caller means.

    Args:
        value: a text (see the module), an algorithm, one of the classes, or a function of
            ``(rank, nranks, builder)``, declared or not.

    Raises:
        InvalidArgument: an unknown name or parameter, or nothing to import.
    """
    if isinstance(value, str):
        return _parse(value.strip())
    if isinstance(value, type) and value in ALGORITHMS.values():
        built: Algorithm = value()
        return built
    if isinstance(value, Algorithm) and not isinstance(value, type):
        return value
    if callable(value):
        return FunctionAlgorithm(value, function_name(value))
    raise InvalidArgument(
        f"algorithm: wrong type: found {type(value).__name__},"
        f" expected a name, an algorithm or a function"
    )


def _parse(text: str) -> Algorithm:
    name, bracket, rest = text.partition("(")
    if ":" in name:
        return algorithm_from(_imported(text))
    if name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    if bracket and not rest.endswith(")"):
        raise InvalidArgument(f"algorithm: bracket not closed: found {text!r}, expected a )")
    parameters = dict(_parameters(name, rest[:-1])) if bracket else {}
    known = {field.name: field for field in fields(cast(Any, ALGORITHMS[name]))}
    for parameter in parameters.keys() - known.keys():
        raise unknown_name(f"{name}: parameter", parameter, known)
    for field in known.values():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in parameters:
            raise InvalidArgument(
                f"{name}: {field.name}: found none, expected {name}({field.name}=...)"
            )
    return ALGORITHMS[name](**parameters)


def _parameters(name: str, text: str) -> Iterator[tuple[str, Any]]:
    for item in _items(text):
        key, _, value = item.partition("=")
        if key not in _READERS:
            raise unknown_name(f"{name}: parameter", key, _READERS)
        try:
            yield key, _READERS[key](value)
        except ValueError as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(f"{name}: {key}: not readable: found {value!r}") from error


def _items(text: str) -> Iterator[str]:
    """What stands between the commas that are in no bracket."""
    depth, first = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield text[first:at].strip()
            first = at + 1
    if text[first:].strip():
        yield text[first:].strip()


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("-")))


def _levels(text: str) -> tuple[Any, ...]:
    """The longest run of slashes separates the highest level."""
    return _level(text, max((len(run) for run in _slashes(text)), default=0))


def _level(text: str, nslashes: int) -> tuple[Any, ...]:
    """One level, which ``nslashes`` slashes separate; ``.`` is no member."""
    if nslashes == 0:
        return _ranks(text)
    members = [member for member in text.split("/" * nslashes) if member != "."]
    return tuple(_level(member, nslashes - 1) for member in members)


def _slashes(text: str) -> list[str]:
    return "".join(letter if letter == "/" else " " for letter in text).split()


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "segments": int,
    "window": int,
    "order": _ranks,
    "levels": _levels,
    "across": algorithm_from,
    "gather": algorithm_from,
}
"""How each parameter is read."""


def _imported(text: str) -> Any:
    where, _, name = text.rpartition(":")
    module = (
        _module_of_file(str(Path(where).resolve())) if where.endswith(".py") else _module(where)
    )
    try:
        return getattr(module, name)
    except AttributeError:
        raise InvalidArgument(
            f"algorithm: no such function: found {name!r}, expected a name in {where}"
        ) from None


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidArgument(f"algorithm: cannot import: found {name!r}: {error}") from error


@lru_cache(maxsize=64)
def _module_of_file(path: str) -> ModuleType:
    """The module in a file; the same one each time, so that its functions stay equal."""
    name = f"rawcoll_algorithms_of_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InvalidArgument(f"algorithm: no such file: found {path!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in the file look themselves up there
    spec.loader.exec_module(module)
    return module
