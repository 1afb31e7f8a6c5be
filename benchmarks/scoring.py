"""How good an answer is, and how sure that is: ranks of what was looked for, shares with their intervals, tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

DEPTHS = (1, 5, 10, 50)
DEEPEST = max(DEPTHS)
ANSWERS = 10
Z = 1.959964  # of a 95 % interval


class Found(NamedTuple):
    """What one recall gave: the rank of the first evidence turn (0 for none), and the share of them in the first 10."""

    category: str
    rank: int
    share: float
    cpu_ms: float


def found(category: str, given: Sequence[str], evidence: frozenset[str], cpu_ms: float = 0.0) -> Found:
    """Where the evidence stands among what was given, best first."""
    rank = next((rank for rank, name in enumerate(given, 1) if name in evidence), 0)
    return Found(category, rank, len(evidence.intersection(given[:ANSWERS])) / max(1, len(evidence)), cpu_ms)


def scores(asked: Sequence[Found]) -> dict[str, Any]:
    """Of some questions, in per cent: hit@k with 95 % Wilson intervals, recall@10, and MRR within the first 50."""
    return {
        "n": len(asked),
        **{f"hit@{k}": rate(sum(0 < each.rank <= k for each in asked), len(asked)) for k in DEPTHS},
        "recall@10": round(100 * statistics.fmean(each.share for each in asked), 1),
        "mrr": round(100 * statistics.fmean(1 / each.rank if each.rank else 0.0 for each in asked), 1),
    }


def by_category(asked: Sequence[Found], names: Iterable[str]) -> dict[str, Any]:
    """The scores of each category that was asked."""
    groups = {name: [each for each in asked if each.category == name] for name in names}
    return {name: scores(group) for name, group in groups.items() if group}


def rate(hits: int, n: int) -> dict[str, Any]:
    """A share in per cent, with its 95 % interval."""
    return {"percent": round(100 * hits / n, 1), "interval": [round(100 * end, 1) for end in wilson(hits, n)]}


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    share, spread = hits / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def percentile(values: Sequence[float], percent: int) -> float:
    """What so many per cent of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def cpu_ms(asked: Sequence[Found]) -> dict[str, float]:
    """What the recalls cost, at the median and at the 95th percentile."""
    spent = [each.cpu_ms for each in asked]
    return {"p50": round(statistics.median(spent), 2), "p95": round(percentile(spent, 95), 2)}


def table(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Scores for people, a line each."""
    wide = max(12, *map(len, rows))
    lines = [
        f"{'':{wide}} {'n':>5} " + " ".join(f"{f'hit@{k}':>18}" for k in DEPTHS) + f" {'recall@10':>10} {'MRR':>6}"
    ]
    for name, row in rows.items():
        cells = " ".join(f"{cell(row[f'hit@{k}']):>18}" for k in DEPTHS)
        lines.append(f"{name:{wide}} {row['n']:5} {cells} {row['recall@10']:10.1f} {row['mrr']:6.1f}")
    return lines


def cell(share: Mapping[str, Any]) -> str:
    """A share and its interval."""
    low, high = share["interval"]
    return f"{share['percent']:.1f} ({low:.1f}-{high:.1f})"
