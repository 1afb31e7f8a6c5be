"""The commands for keys: list them, back them up, bring them back."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import Refused
from .. import documents, tables
from ..request import Created, Request
from .verb import Reason, verb

keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Read the passphrase from a file; else TALLYSTICK_PASSPHRASE; else it is asked for.",
        show_default=False,
    ),
]


@keys.command("list")
@verb
def list_(request: Request) -> None:
    """Show the keys of the store: what each is for, its public id, where it is. No secret."""
    from ...memory import Memory  # noqa: PLC0415  the store and its libraries; --help needs none of it

    settings = request.settings()
    request.answer(Memory.list_keys(settings.path, keys=settings.keys), documents.keys, tables.keys)


@keys.command()
@verb
def backup(
    request: Request,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file that is not there yet.", show_default=False)
    ] = None,
    passphrase_file: PassphraseFile = None,
    decline: Annotated[
        bool, typer.Option("--decline", help="Put on record instead that these keys need no backup.")
    ] = False,
    reason: Reason = None,
) -> None:
    """Seal the keys under a passphrase into one small file.

    With it and the store everything can be read and verified again, on any machine. The keys that sign events are not
    in it.
    """
    if (file is None) is not decline:
        raise typer.BadParameter("Name a file to write, or --decline a backup.", param_hint="FILE")
    if reason is not None and not decline:
        raise typer.BadParameter("A reason is put on record with --decline only.", param_hint="--reason")
    if file is None:
        with request.memory(model="none") as memory:
            position = memory.decline_key_backup(reason=reason)
        request.answer(position, documents.backup_declined, tables.backup_declined)
    else:
        back_up(request, file, _passphrase(passphrase_file, twice=True))


@keys.command()
@verb
def restore(
    request: Request,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `tallystick keys backup` wrote.")],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Bring the keys of the store back from a backup.

    Writes the keys that are missing to where the store's keys are looked for, and never over another. The store can
    then be read and verified; to write to it takes the keys that sign as well.
    """
    from ...memory import Memory  # noqa: PLC0415  as above

    settings, passphrase = request.settings(), _passphrase(passphrase_file, twice=False)
    restored = Memory.restore_keys(settings.path, file, passphrase, keys=settings.keys)
    request.answer(restored, documents.keys_restored, tables.keys_restored)


def back_up(request: Request, file: Path, passphrase: str) -> None:
    """Write a backup, and answer with what was written."""
    with request.memory(model="none") as memory:
        made = memory.back_up_keys(file, passphrase)
    request.answer(made, documents.keys_backed_up, tables.keys_backed_up)


def offer_backup(request: Request, made: Created) -> None:
    """After a store was made on a terminal: ask whether to back up its keys now."""
    if request.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if typer.confirm("Back up the keys now, under a passphrase?", default=True, err=True):
        file = Path(typer.prompt("To which file (best on another disk)", err=True)).expanduser()
        back_up(Request(made.store, request.as_json, request.debug, request.bar), file, _passphrase(None, twice=True))


def _passphrase(file: Path | None, *, twice: bool) -> str:
    """The passphrase from a file, the environment or a person. Never an argument: those are seen by everybody."""
    from ...config import PASSPHRASE_VARIABLE  # noqa: PLC0415  pydantic; --help needs none of it

    if file is not None:
        return _passphrase_in(file)
    if PASSPHRASE_VARIABLE in os.environ:
        return os.environ[PASSPHRASE_VARIABLE]
    if not sys.stdin.isatty():
        raise Refused(
            f"There is no terminal to ask for the passphrase. Give --passphrase-file or {PASSPHRASE_VARIABLE}."
        )
    typed = getpass.getpass("Passphrase: ")
    if twice and typed != getpass.getpass("The same again: "):
        raise Refused("The two passphrases differ: nothing was written. Try again.")
    return typed


def _passphrase_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"The passphrase can't be read from {file} ({error}). Name a text file.") from error


def join(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(keys, name="keys", help="List the keys, back them up, bring them back.")
