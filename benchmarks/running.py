"""How a benchmark is run and what is said with its figures: the machine, the command, processes of their own."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def parser(module: str, told: str | None) -> argparse.ArgumentParser:
    """What every benchmark takes: where to put its stores, and one JSON document instead of a table."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=told)
    made.add_argument("--folder", type=Path, help="where to put the stores (default: the temporary directory)")
    made.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    return made


def say(
    report: Mapping[str, Any], module: str, given: Sequence[str], table: Callable[[Mapping[str, Any]], str]
) -> None:
    """Print a report with the machine and the command it comes from: a JSON document if asked for, else a table."""
    command = shlex.join(["python", "-m", module, *given])
    whole = {**report, "machine": machine(), "command": command}
    print(json.dumps(whole, indent=2) if "--json" in given else f"{table(whole)}\n{machine()}; {command}")


def machine() -> str:
    """What it is measured on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def tell(progress: str) -> None:
    """Say on the standard error how far it has come."""
    print(progress, file=sys.stderr, flush=True)


def in_its_own(python: Path | str, script: Sequence[str], environment: Mapping[str, str] | None = None) -> Any:
    """The JSON document that a process of its own prints."""
    run = subprocess.run(
        [str(python), *script],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=None if environment is None else {**environment},
    )
    return json.loads(run.stdout.splitlines()[-1])


def most_mib() -> int:
    """How much memory this process had at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (1024 if sys.platform == "linux" else 1 << 20))


def disk_mib(folder: Path) -> float:
    """What the files of a folder take."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / (1 << 20), 2)
