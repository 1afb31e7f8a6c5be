"""Any question in SQL, over a copy of the views in memory that it can only read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import Refused
from ..events.driver import DRIVER_ERRORS, Scratch
from ..projections.view import View
from ..projections.views import ALL_VIEWS, GROUPS, Views

TABLES = ("memories", "alias", "access", "audit")
"""The tables that can be asked: those of the views that hold rows a person can read."""
SECONDS = 10.0
MOST_ROWS = 100_000
_LOOK = "Look at the tables with `select name, sql from sqlite_schema`"


class Rows(NamedTuple):
    """The answer to a statement: the names of its columns, and its rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def select(views: Views, statement: str, parameters: Sequence[Any]) -> Rows:
    """The rows of one statement, over the views as they are now.

    Raises Refused for a statement that does more than read, that is none, that takes over ten seconds, or that gives
    over 100,000 rows.
    """
    views.catch_up(*GROUPS)
    scratch = Scratch()
    try:
        _copy(views, scratch)
        columns, rows = scratch.select(statement, tuple(parameters), SECONDS, MOST_ROWS + 1)
    except DRIVER_ERRORS as error:
        why = str(error).rstrip(".")
        raise Refused(f"The statement can't be answered: {why}. {_LOOK}, then ask again.") from error
    finally:
        scratch.close()
    if not columns:
        raise Refused(f"{statement!r} asks for no rows. Give one `select` statement.")
    if len(rows) > MOST_ROWS:
        raise Refused(f"The statement gives over {MOST_ROWS:,} rows. Ask for fewer: add a `limit`, or count them.")
    return Rows(columns, tuple(rows))


def _copy(views: Views, scratch: Scratch) -> None:
    with views.reading() as cursor:
        for statement in (each for view in ALL_VIEWS for each in _tables(view)):
            table = statement.split()[2]
            scratch.execute(statement)
            rows = cursor.execute(f"SELECT * FROM {table}")
            scratch.fill(table, len(rows.description), rows)


def _tables(view: View) -> list[str]:
    return [each for each in view.schema if each.startswith("CREATE TABLE") and each.split()[2] in TABLES]
