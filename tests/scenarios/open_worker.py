"""One of several processes that open the same store at once, creating it where it is not there.

Arguments: store, keys (or nothing for the default), the worker's name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tallystick import Memory
from tallystick.errors import TallystickError


def main(store: str, keys: str, name: str) -> None:
    """Wait for a line, open, store one memory and say its id, wait for another line, close."""
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    try:
        with Memory.open(Path(store), keys=Path(keys) if keys else None, model="none") as memory:
            outcome = memory.store(f"{name} was here")
            print(json.dumps({"id": outcome.id, "keys": memory.status().keys}), flush=True)
            sys.stdin.readline()
    except TallystickError as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
