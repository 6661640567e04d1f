"""Algorithms: ranks and units in, programs out. One family a file; ``catalog`` lists them."""

from rawcoll.algorithms.base import Algorithm, Constraints, check_fits, text
from rawcoll.algorithms.binomial import Binomial
from rawcoll.algorithms.builtin import Builtin
from rawcoll.algorithms.catalog import algorithm_from, names_for
from rawcoll.algorithms.direct import Direct
from rawcoll.algorithms.doubling import Doubling
from rawcoll.algorithms.function import FunctionAlgorithm, algorithm
from rawcoll.algorithms.gather_reduce import GatherReduce
from rawcoll.algorithms.halving import Halving
from rawcoll.algorithms.hierarchical import Hierarchical
from rawcoll.algorithms.prove import programs, prove
from rawcoll.algorithms.ring import Ring
from rawcoll.algorithms.tree import Tree
from rawcoll.algorithms.two_shot import TwoShot

__all__ = [
    "Binomial",
    "Builtin",
    "Direct",
    "Doubling",
    "GatherReduce",
    "Halving",
    "Hierarchical",
    "Ring",
    "Tree",
    "TwoShot",
    "Algorithm",
    "Constraints",
    "FunctionAlgorithm",
    "algorithm",
    "algorithm_from",
    "check_fits",
    "names_for",
    "programs",
    "prove",
    "text",
]
