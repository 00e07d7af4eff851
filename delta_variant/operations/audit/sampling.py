"""Choose files for an audit of some of them, and bound what the others may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma
from random import Random
from typing import TypeVar

CONFIDENCE, ROUNDING = 0.95, 1e-9

Item = TypeVar("Item")


@dataclass(frozen=True)
class AuditSample:
    """What a sample of data files says about all of them.

    Attributes:
        files: The number of files from which the sample was chosen.
        checked: The number of files of the sample.
        wrong: The number of checked files with an error or a warning.
        wrong_at_most: The number of all files that have one, at most, with 95 % confidence.

    Example:
        >>> import delta_variant as dv
        >>> events = dv.Table("events")
        >>> for day in range(3):
        ...     _ = events.append([{"day": day}])
        >>> dv.audit_table("events", sample=1).sample
        AuditSample(files=3, checked=1, wrong=0, wrong_at_most=2)
    """

    files: int
    checked: int
    wrong: int
    wrong_at_most: int


def choose(items: Sequence[Item], number: int, seed: int) -> list[Item]:
    """Return items in their order, each with the same chance, and the same items for the same seed."""
    chosen = Random(seed).sample(range(len(items)), min(number, len(items)))
    return [items[index] for index in sorted(chosen)]


def sample_of(files: int, checked: int, wrong: int) -> AuditSample:
    """Return what a sample says, by the exact (hypergeometric) distribution of its wrong files.

    A number of wrong files is possible if a sample with so few of them is not improbable.
    """
    low, high = wrong, files - checked + wrong
    while low < high:
        middle = (low + high + 1) // 2
        if _probability(files, checked, middle, wrong) > 1 - CONFIDENCE + ROUNDING:
            low = middle
        else:
            high = middle - 1
    return AuditSample(files, checked, wrong, low)


def _probability(files: int, checked: int, wrong: int, found: int) -> float:
    """Return the probability that a sample has at most `found` of the wrong files."""
    least = max(0, checked - (files - wrong))
    logs = (
        _log_choose(wrong, number)
        + _log_choose(files - wrong, checked - number)
        - _log_choose(files, checked)
        for number in range(least, min(found, wrong) + 1)
    )
    return sum(map(exp, logs))


def _log_choose(count: int, number: int) -> float:
    return lgamma(count + 1) - lgamma(number + 1) - lgamma(count - number + 1)
