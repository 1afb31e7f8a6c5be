"""The lease keeps a second host away from a store, and never keeps the host that has it from its own."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from threading import Thread

import pytest

from tallystick.errors import Busy, Refused, Unavailable
from tallystick.events import lease as lease_module
from tallystick.events.installation import Installation
from tallystick.events.lease import FILE, Host, Lease, holder

from .conftest import Place, store

HERE = Host("alpha", "machine-a", "boot-1")
THERE = Host("beta", "machine-b", "boot-2")


def held_by(host: Host, folder: Path) -> None:
    """Write a lease as that host would have it, whose locks do not reach here."""
    (folder / FILE).write_text(json.dumps(host._asdict()), encoding="ascii")


def on(patch: pytest.MonkeyPatch, host: Host) -> None:
    """Be on another host from here on."""
    patch.setattr(Host, "this", classmethod(lambda _: host))


def test_this_host_is_told_by_the_system() -> None:
    """A name, and on Linux the boot that all containers of one kernel share."""
    host = Host.this()
    assert host.name
    if Path("/proc/sys/kernel/random/boot_id").exists():
        assert len(host.boot) == 36


def test_processes_of_one_host_share_the_lease(tmp_path: Path) -> None:
    """The first writes it, others join, and the last to let go leaves it free."""
    first, second = Lease.take(tmp_path), Lease.take(tmp_path)
    assert holder(tmp_path) == Host.this()
    first.release()
    assert holder(tmp_path) == Host.this()
    second.release()
    assert holder(tmp_path) is None


def test_a_child_that_inherited_it_holds_nothing_up(tmp_path: Path) -> None:
    """What a fork copied is let go with the original, so that the parent can open again, and have it alone."""
    lease = Lease.take(tmp_path)
    inherited = os.dup(lease._descriptor)
    lease.release()
    again = Lease.take(tmp_path)
    again.exclude(tmp_path)
    again.release()
    os.close(inherited)


def test_a_lease_that_has_no_room_is_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is opened where it can't be said who has it open."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(Unavailable, match=r"No space left on device.*Free some room"):
        Lease.take(tmp_path)
    assert holder(tmp_path) is None


def test_containers_of_one_host_are_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is the kernel, which hands out the locks, and not the name a container was given."""
    on(monkeypatch, HERE)
    first = Lease.take(tmp_path)
    on(monkeypatch, HERE._replace(name="container", machine=""))
    Lease.take(tmp_path).release()
    first.release()


def test_a_second_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first has the store open, or went down with it: who holds it is named, and nothing is changed."""
    held_by(THERE, tmp_path)
    on(monkeypatch, HERE)
    with pytest.raises(Busy, match=r"open on the host 'beta'.* and this is 'alpha'.*`tallystick take-over`"):
        Lease.take(tmp_path)
    assert holder(tmp_path) == THERE


def test_a_lease_that_was_let_go_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that was closed may be opened on any host."""
    on(monkeypatch, THERE)
    Lease.take(tmp_path).release()
    on(monkeypatch, HERE)
    Lease.take(tmp_path).release()


def test_a_lease_is_taken_over_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a person who knows that nothing on the other host uses the store any more."""
    held_by(THERE, tmp_path)
    on(monkeypatch, HERE)
    lease = Lease.take(tmp_path, over=True)
    assert holder(tmp_path) == HERE
    lease.release()
    assert holder(tmp_path) is None


def test_this_machine_after_a_restart_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ran before the restart has ended, so nobody is asked."""
    held_by(HERE._replace(boot="boot-7"), tmp_path)
    on(monkeypatch, HERE)
    lease = Lease.take(tmp_path)
    assert holder(tmp_path) == HERE
    lease.release()


def test_a_twin_of_this_machine_is_another_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines cloned from one image have one machine id: with another name it is not this one restarted."""
    held_by(HERE._replace(name="gamma", boot="boot-9"), tmp_path)
    on(monkeypatch, HERE)
    with pytest.raises(Busy, match="'gamma'"):
        Lease.take(tmp_path)


@pytest.mark.parametrize("content", [b"\0", b"{}", b"[1]", b'{"name": "x"}', b"\xff\xfe"])
def test_a_lease_that_cant_be_read_is_held(tmp_path: Path, content: bytes) -> None:
    """Damage is not taken for freedom."""
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(Busy, match="a host that can't be read"):
        Lease.take(tmp_path)
    Lease.take(tmp_path, over=True).release()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_network_file_systems_are_refused(place: Place, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store can neither be made nor opened for writing there: locks don't hold."""
    place.create().close({})
    monkeypatch.setattr(lease_module, "file_system", lambda _: kind)
    with pytest.raises(Refused, match=rf"network file system \({kind}\)"):
        place.open()
    with pytest.raises(Refused, match=rf"network file system \({kind}\)"):
        Installation.create(place.store.with_name("new"), place.keys.with_name("new-keys"))
    assert not place.store.with_name("new").exists()
    assert not place.keys.with_name("new-keys").exists()


def test_a_directory_that_cant_be_written_to_says_what_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be read all the same."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unavailable, match=r"can't be written to \(Permission denied\).*read_only=True"):
        Lease.take(tmp_path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """Nobody has us write somewhere else."""
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        Lease.take(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_an_open_installation_holds_the_lease(place: Place) -> None:
    """From opening to closing, for every process that writes."""
    first = place.create()
    second = place.open()
    assert holder(place.store) == Host.this()
    first.close({})
    assert holder(place.store) == Host.this()
    second.abandon()
    assert holder(place.store) is None


def test_a_store_that_another_host_has_open_is_not_opened(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read, verified or written before the lease is had."""
    place.create().close({})
    before = (place.store / "log.db").read_bytes()
    held_by(THERE, place.store)
    on(monkeypatch, HERE)
    with pytest.raises(Busy):
        place.open()
    assert (place.store / "log.db").read_bytes() == before
    reading = Installation.read(place.store, place.keys)
    assert reading.memory.tip.size == 1
    reading.abandon()


def test_an_opening_that_fails_lets_the_lease_go(place: Place) -> None:
    """A store that does not verify is not held by who was refused."""
    installation = place.create()
    store(installation.memory, "a text")
    installation.close({})
    (place.keys / "writer.key").write_text("00" * 32 + "\n", encoding="ascii")
    with pytest.raises(Exception, match=r"writer.key"):
        place.open()
    assert holder(place.store) is None


def test_a_store_that_nobody_opened_has_no_holder(tmp_path: Path) -> None:
    """To ask who has it leaves nothing behind."""
    assert holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_to_have_it_alone_waits_for_nobody(tmp_path: Path) -> None:
    """While another has the store open it is not exclusive; the one that asked goes on sharing it."""
    first, second = Lease.take(tmp_path), Lease.take(tmp_path)
    with pytest.raises(Busy, match="is open in another process or Memory. Close it there"):
        second.exclude(tmp_path)
    first.release()
    second.exclude(tmp_path)
    second.release()
    assert holder(tmp_path) is None


def test_who_is_kept_from_the_lease_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs while it opens the store keeps others waiting for a while, and not for ever."""
    monkeypatch.setattr(lease_module, "PATIENCE_SECONDS", 0.05)
    with (tmp_path / FILE).open("wb") as hanging:
        fcntl.flock(hanging, fcntl.LOCK_SH)
        with pytest.raises(Busy, match="none gets through. Try again"):
            Lease.take(tmp_path)
        assert holder(tmp_path) is None
    Lease.take(tmp_path).release()


def test_a_host_whose_boot_is_not_told_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system tells no boot and no machine, processes of one name share, and no restart is taken for one."""
    for name in ("_MACHINE", "_BOOT"):
        monkeypatch.setattr(lease_module, name, tmp_path / "not there")
    host = Host.this()
    assert (host.machine, host.boot) == ("", "")
    assert host.shares_locks_with(HERE._replace(name=host.name))
    assert not host.shares_locks_with(THERE)
    assert not host.has_ended(host)


def test_to_be_alone_for_a_while_is_not_to_be_so_for_good(tmp_path: Path) -> None:
    """Nobody begins to take part meanwhile; afterwards the lease names this host and is shared as before."""
    first = Lease.take(tmp_path)
    with first.excluding() as alone:
        assert alone
        joined: list[Lease] = []
        joining = Thread(target=lambda: joined.append(Lease.take(tmp_path)))
        joining.start()
        joining.join(0.1)
        assert joined == []
    joining.join()
    with first.excluding() as alone:
        assert not alone
    assert holder(tmp_path) == Host.this()
    joined[0].release()
    assert holder(tmp_path) == Host.this()
    first.release()
    assert holder(tmp_path) is None
