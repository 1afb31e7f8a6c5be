"""Settings: where they come from, in which order, and what a mistake is answered with."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.config import PREFIX, PROJECT_FILE, Settings, load_settings, write_project
from tallystick.errors import Refused

VALUES = {"path": "/tmp/a", "namespace": "user:ana", "actor": "agent:scout", "keys": "/tmp/k", "audit": "strict",
          "model": "none"}  # fmt: skip


def project(folder: Path, **values: str) -> Path:
    """Write a project file."""
    file = folder / PROJECT_FILE
    file.write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()), encoding="utf-8")
    return file


def test_every_setting_has_a_value_here_and_a_word_about_it() -> None:
    """A setting that is added is tested and documented: its meaning stands under it in the source."""
    assert set(VALUES) == set(Settings.model_fields)
    source = Path(inspect.getfile(Settings)).read_text(encoding="utf-8")
    for name in Settings.model_fields:
        assert re.search(rf'^    {name}: .*\n    """.+"""$', source, re.MULTILINE), name


def test_without_anything_there_are_defaults(tmp_path: Path) -> None:
    """A store needs no configuration."""
    found = load_settings(tmp_path)
    assert (found.path, found.namespace, found.model) == (Path(".tallystick"), "default", "auto")
    assert (found.actor, found.keys) == (None, None)


@pytest.mark.parametrize("name", VALUES)
def test_the_environment_says_what_nobody_else_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting has a TALLYSTICK_ variable."""
    monkeypatch.setenv(f"{PREFIX}{name.upper()}", VALUES[name])
    assert str(getattr(load_settings(), name)) == VALUES[name]


@pytest.mark.parametrize("name", VALUES)
def test_the_project_file_comes_before_the_default(name: str, tmp_path: Path) -> None:
    """Each setting can stand in the project file."""
    project(tmp_path, **{name: VALUES[name]})
    assert str(getattr(load_settings(tmp_path), name)) == VALUES[name]


@pytest.mark.parametrize("name", VALUES)
def test_the_environment_comes_before_the_project_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable set for one run is not overruled by a file; the other settings of the file stand."""
    project(tmp_path, **{**VALUES, name: f"{VALUES[name]}-of-the-file"})
    monkeypatch.setenv(f"{PREFIX}{name.upper()}", VALUES[name])
    found = load_settings(tmp_path)
    assert {each: str(getattr(found, each)) for each in VALUES} == VALUES


def test_the_project_file_is_found_upwards(tmp_path: Path) -> None:
    """Below a directory with a project file the nearest one upwards is in force, as git does; its paths are its own."""
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    project(tmp_path, namespace="outer", path="memory", keys="keys")
    assert load_settings(tmp_path / "a" / "b" / "c").path == tmp_path / "memory"
    assert load_settings(tmp_path / "a" / "b" / "c").keys == str(tmp_path / "keys")
    project(tmp_path / "a" / "b", namespace="inner")
    assert load_settings(tmp_path / "a" / "b" / "c").namespace == "inner"
    assert load_settings(tmp_path / "a").namespace == "outer"


def test_no_project_file_is_looked_for_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens a store by its path is not surprised by a file that lies about."""
    project(tmp_path, namespace="outer")
    monkeypatch.chdir(tmp_path)
    assert load_settings().namespace == "default"
    assert load_settings(Path()).namespace == "outer"


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("TALLYSTICK_NAMESPCE", "TALLYSTICK_NAMESPACE"),
        ("TALLYSTICK_KEY", "TALLYSTICK_KEYS"),
        ("TALLYSTICK_STORE_PATH", "TALLYSTICK_PATH"),
        ("TALLYSTICK_actor", "TALLYSTICK_ACTOR"),
    ],
)
def test_a_variable_that_is_no_setting_is_refused(wrong: str, nearest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable is not ignored: the nearest name is offered."""
    monkeypatch.setenv(wrong, "x")
    with pytest.raises(Refused, match=rf"{wrong} .*{nearest}\?"):
        load_settings()


@pytest.mark.parametrize(("wrong", "nearest"), [("namespce", "namespace"), ("Path", "path"), ("acter", "actor")])
def test_a_name_in_the_project_file_that_is_no_setting_is_refused(wrong: str, nearest: str, tmp_path: Path) -> None:
    """Neither is a misspelt name in the file."""
    project(tmp_path, **{wrong: "x"})
    with pytest.raises(Refused, match=rf"{wrong} .*{nearest}\?"):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"namespace = ", b"namespace: x", b"\xff\xfe", b'namespace = "a"\nnamespace = "b"', b"[[", b"= 1", b'a = "\0"'],
)
def test_a_project_file_that_cannot_be_read_is_refused(content: bytes, tmp_path: Path) -> None:
    """What is not TOML is refused, naming the file."""
    (tmp_path / PROJECT_FILE).write_bytes(content)
    with pytest.raises(Refused, match=re.escape(str(tmp_path / PROJECT_FILE))):
        load_settings(tmp_path)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("value", ["5", "[1, 2]", "true", "{ a = 1 }", "2023-05-08"])
def test_a_value_of_another_type_is_refused(name: str, value: str, tmp_path: Path) -> None:
    """Every setting is a text: anything else is refused, naming the setting."""
    (tmp_path / PROJECT_FILE).write_text(f"{name} = {value}\n", encoding="utf-8")
    with pytest.raises(Refused, match=name):
        load_settings(tmp_path)


def test_settings_do_not_change(tmp_path: Path) -> None:
    """What was loaded is what is in force."""
    with pytest.raises(ValueError, match="frozen"):
        load_settings(tmp_path).namespace = "other"


def test_a_project_file_that_was_written_is_found(tmp_path: Path) -> None:
    """What is written by `tallystick init` is what is loaded below it, with the store beside the file."""
    (tmp_path / "src").mkdir()
    file = write_project(tmp_path, tmp_path / "memory", "project:app")
    assert file == tmp_path / PROJECT_FILE
    found = load_settings(tmp_path / "src")
    assert (found.path, found.namespace) == (tmp_path / "memory", "project:app")
    assert not Path(tomllib.loads(file.read_text(encoding="utf-8"))["path"]).is_absolute()


def test_a_project_has_one_file(tmp_path: Path) -> None:
    """Writing the file a second time is refused, and leaves the first as it was."""
    file = write_project(tmp_path, tmp_path / "memory", "project:app")
    before = file.read_bytes()
    with pytest.raises(Refused, match=re.escape(str(file))):
        write_project(tmp_path, tmp_path / "other", "project:other")
    assert file.read_bytes() == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=30),
    namespace=st.text("ab/:%é\"'\\#=$🏡{}[]", min_size=1, max_size=30),
)
def test_any_name_survives_the_project_file(tmp_path: Path, name: str, namespace: str) -> None:
    """Whatever a directory or a namespace is called, it is loaded as it was written."""
    (tmp_path / PROJECT_FILE).unlink(missing_ok=True)
    write_project(tmp_path, tmp_path / f"{name}.store", namespace)
    found = load_settings(tmp_path)
    assert (found.path, found.namespace) == (tmp_path / f"{name}.store", namespace)
