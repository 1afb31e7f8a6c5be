"""Charts of what benchmarks printed: `python -m tools.plot_benchmarks REPORT.json CHART.png`.

Takes the --json of supersession, peers, ingest, recall_speed, and of locomo with --ablations. Needs the group `plots`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402  after the choice of what it draws with

Report = Mapping[str, Any]

COLOURS = ("#1f5a7a", "#d9822b", "#8aa29e", "#b5483a", "#6b4e8f", "#4c8c4a", "#999999")
DPI = 130


def supersession(report: Report) -> Any:
    """At the greatest size, how often the current statement and a superseded one are among the first ten, by sort."""
    size, of = [*report["sizes"].items()][-1]
    told = {
        "complete@10": "what holds now is among ten (more is better)",
        "forbidden@10": "what was corrected is (fewer is better)",
        "ahead": "what holds now comes first (more is better)",
    }
    sorts = [sort for sort in of["arms"]["tallystick"] if sort != "marked"]
    figure, panels = pyplot.subplots(1, len(told), figsize=(14, 3.6), sharey=True)
    for panel, (what, meaning) in zip(panels, told.items(), strict=True):
        arms = {arm: [row[sort][what]["percent"] for sort in sorts] for arm, row in of["arms"].items()}
        _grouped(panel, sorts, arms)
        panel.set_title(f"{what}: {meaning}")
        panel.set_ylim(0, 112)
    panels[0].set_ylabel(f"% of the questions, {size} notes")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def peers(report: Report) -> Any:
    """What each side costs at the greatest size, on logarithmic axes, and how much it finds."""
    size, of = [*report["sizes"].items()][-1]
    arms: Mapping[str, Any] = of["arms"]
    names = [f"{name} ({row['version']})" if "newest" in name else name for name, row in arms.items()]
    costs: dict[str, Callable[[Any], float]] = {
        "recall, CPU ms (median), logarithmic": lambda row: row["recall_cpu_ms"]["p50"],
        "store, CPU ms, logarithmic": lambda row: row["store_cpu_ms"],
        "first recall of a process, CPU s, logarithmic": lambda row: row["first_recall_cpu_seconds"],
        "disk, MiB, logarithmic": lambda row: row["disk_mib"],
        "most memory, MiB, logarithmic": lambda row: max(row["rss_mib"].values()),
        "hit@10, %": lambda row: row["hit@10"]["percent"],
    }
    figure, panels = pyplot.subplots(2, 3, figsize=(14, 6.5), sharey=True)
    for panel, (what, value) in zip(panels.flat, costs.items(), strict=True):
        _bars(panel, names, [value(row) for row in arms.values()], logarithmic=what.endswith("logarithmic"))
        panel.set_title(what)
    figure.suptitle(f"{size} texts in one namespace; no reranker on either side")
    return figure


def ingest(report: Report) -> Any:
    """Processor time of a memory, by how it is stored."""
    figure, panels = pyplot.subplots(1, len(report["sizes"]), figsize=(5.5 * len(report["sizes"]), 3), squeeze=False)
    for panel, (size, ways) in zip(panels[0], report["sizes"].items(), strict=True):
        _bars(panel, [*ways], [cost["cpu_ms"] for cost in ways.values()], logarithmic=False)
        panel.set_title(f"CPU ms a memory, {size} memories")
    return figure


def ablations(report: Report) -> Any:
    """How much worse it gets without each stage."""
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True)
    figures: dict[str, Callable[[Any], float]] = {"hit@10": lambda share: share["percent"], "mrr": float}
    for panel, (name, value) in zip(panels, figures.items(), strict=True):
        parts = {part: _losses(of, name, value) for part, of in report["ablations"].items()}
        stages = [*next(iter(parts.values()))]
        _grouped(panel, stages, {part: [*losses.values()] for part, losses in parts.items()}, lying=True)
        panel.set_title(f"points of {name if name != 'mrr' else 'MRR'} lost without the stage")
        panel.axvline(0, color="black", linewidth=0.8)
    panels[0].invert_yaxis()
    panels[1].legend(frameon=False)
    return figure


def recall_speed(report: Report) -> Any:
    """Processor time of a whole recall, and of each search beside what does the same, as a namespace grows."""
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 4.2))
    lines: dict[str, list[tuple[int, float]]] = {}
    for each in report["figures"]:
        lines.setdefault(each["what"], []).append((each["memories"], each["median_ms"]))
    for name, points in lines.items():
        panel = panels[0] if name.startswith("recall,") else panels[1]
        if name.startswith(("recall,", "lexical", "dense")):
            panel.loglog(*zip(*points, strict=True), marker="o", label=name.removeprefix("recall, "))
    for panel, title in zip(panels, ("a recall of ten, its receipt included", "the two searches alone"), strict=True):
        panel.set_title(f"CPU ms: {title}")
        panel.set_xlabel("memories in the namespace")
        panel.grid(which="major", alpha=0.25)
        panel.legend(frameon=False, fontsize=7)
        _plain(panel)
    return figure


def _losses(of: Report, name: str, value: Callable[[Any], float]) -> dict[str, float]:
    whole = value(of["all stages"][name])
    return {stage: round(whole - value(row[name]), 1) for stage, row in of.items() if stage != "all stages"}


def _grouped(panel: Any, labels: Sequence[str], arms: Mapping[str, Sequence[float]], *, lying: bool = False) -> None:
    """Bars of several arms beside each other, each with its value."""
    thick = 0.8 / len(arms)
    for number, (name, values) in enumerate(arms.items()):
        places = [place + (number - (len(arms) - 1) / 2) * thick for place in range(len(labels))]
        draw = panel.barh if lying else panel.bar
        drawn = draw(places, values, thick, label=name, color=COLOURS[number])
        panel.bar_label(drawn, fmt="{:g}", fontsize=7, padding=1)
    (panel.set_yticks if lying else panel.set_xticks)(range(len(labels)), labels)
    _plain(panel)


def _bars(panel: Any, labels: Sequence[str], values: Sequence[float], *, logarithmic: bool) -> None:
    """A bar for each, the first on top, with its value."""
    ours = [COLOURS[0] if label.startswith("tallystick") else COLOURS[2] for label in labels]
    drawn = panel.barh(range(len(labels)), values, color=ours if COLOURS[0] in ours else COLOURS[0])
    panel.bar_label(drawn, fmt="{:,.4g}", fontsize=8, padding=2)
    panel.set_yticks(range(len(labels)), labels)
    if logarithmic:
        panel.set_xscale("log")
    panel.tick_params(axis="x", which="both", bottom=False, labelbottom=False)  # each bar says its value
    panel.margins(x=0.25)
    if not panel.yaxis_inverted():
        panel.invert_yaxis()
    _plain(panel)


def _plain(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)


CHARTS = {
    "supersession": supersession,
    "peers": peers,
    "ingest": ingest,
    "locomo": ablations,
    "recall_speed": recall_speed,
}


def main(source: Path, target: Path) -> None:
    """Draw the chart of one report, with where its figures come from below."""
    report = json.loads(source.read_text())
    name = next(name for name in CHARTS if f"benchmarks.{name}" in report["command"])
    pyplot.rcParams.update({"font.size": 9, "axes.titlesize": 9, "figure.constrained_layout.use": True})
    figure = CHARTS[name](report)
    figure.supxlabel(f"python -m benchmarks.{name}; {report['machine']}", fontsize=7, color="#555555")
    figure.savefig(target, dpi=DPI)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
