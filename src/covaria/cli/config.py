"""Settings from covaria.toml: what would be typed every time is written once.

learner = "boosting(trees=200)"     # for every command that has the option
[assess]
target = "price"
methods = ["gcm", "loco"]
[groups]
place = ["lat", "lon"]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import typer

from covaria.errors import InputError, did_you_mean, short
from covaria.options.checks import shown
from covaria.tables.texts import read_toml

NAME = "covaria.toml"
# Options that say where something is written.
WRITTEN = ("out", "report", "plot", "page", "picture", "store")
# What an option takes is the first of these that it accepts.
KINDS = (("x", "a text"), ("0.5", "a number"), ("5", "a whole number"))
# What only the user may say, on the line: a file may have come with the rest of a folder.
TYPED_ONLY = ("code", "trust")


class Parameter(Protocol):
    """An option or argument of a command."""

    name: str
    nargs: int
    opts: list[str]

    def process_value(self, ctx: None, value: object) -> object:
        """Return a value as the command gets it, or raise."""
        ...


class Command(Protocol):
    """A command, or a group of them if it has `commands`."""

    params: list[Parameter]


class App(Protocol):
    """Commands by name."""

    commands: Mapping[str, Command]


def find_config(given: Path | None) -> Path | None:
    """Return the file named, or COVARIA_CONFIG, or covaria.toml in this folder, or nothing."""
    named = given or (
        Path(os.environ["COVARIA_CONFIG"]) if "COVARIA_CONFIG" in os.environ else None
    )
    if named is not None:
        return named
    return Path(NAME) if Path(NAME).is_file() else None


def read_config(path: Path) -> dict[str, object]:
    """Return what a configuration file says."""
    return read_toml(path)


def is_trusted(given: Path | None) -> bool:
    """Return whether the user named the file: one that just lies in a folder may be anyone's."""
    return given is not None or "COVARIA_CONFIG" in os.environ


def check_places(given: Mapping[str, object], path: Path) -> None:
    """Raise where a file that was not named would write elsewhere or send the table away."""
    here = Path.cwd().resolve()
    for name, value in given.items():
        if isinstance(value, Mapping):
            check_places(value, path)
        elif name in WRITTEN and not (here / str(value)).resolve().is_relative_to(here):
            raise InputError(
                f"{path}: {name} = '{short(str(value))}' lies outside this folder. If you trust "
                f"the file, name it: covaria --config {path}."
            )
        elif name == "dask" and value != "local":
            raise InputError(
                f"{path}: dask = '{short(str(value))}' sends the table to other machines. If you "
                f"trust the file, name it: covaria --config {path}."
            )


def defaults(app: App, found: Mapping[str, object], path: Path) -> dict[str, dict[str, object]]:
    """Return the defaults that a file gives to every command of an app, by parameter."""
    own = dict(found)
    _check_typed(found, path)
    for_all = {name: own.pop(name) for name in list(own) if not isinstance(own[name], dict)}
    if isinstance(own.get("groups"), dict):  # the option takes a file, and this is one
        own.pop("groups")
        for_all["groups"] = str(path)
    _check_commands(app, own, path)
    used: set[str] = set()
    given = {
        name: _for_command(command, for_all, own.get(name, {}), (path, f"[{name}]"), used)
        for name, command in app.commands.items()
    }
    for name in for_all:
        if name not in used:
            known = sorted({option for c in app.commands.values() for option in _options(c)})
            raise InputError(f"{path}: there is no option '{name}'.{did_you_mean(name, known)}")
    return given


def _check_typed(found: Mapping[str, object], path: Path) -> None:
    for name, value in found.items():
        if name in TYPED_ONLY:
            raise InputError(f"{path}: --{name} lets Python run, so it has to be typed. Drop it.")
        if isinstance(value, Mapping) and name != "groups":
            _check_typed(value, path)


def _check_commands(app: App, sections: Mapping[str, object], path: Path) -> None:
    for name in sections:
        if name not in app.commands:
            hint = did_you_mean(name, app.commands)
            raise InputError(f"{path}: there is no command [{short(name)}].{hint}")


def _for_command(
    command: Command,
    for_all: Mapping[str, object],
    own: object,
    place: tuple[Path, str],
    used: set[str],
) -> dict[str, object]:
    """Return one command's defaults; those of a group of commands are theirs."""
    file, section = place
    where = f"{file} {section}"
    if not isinstance(own, Mapping):
        raise InputError(f"{where} is {short(repr(own))}. Write options below it, as name = value.")
    if hasattr(command, "commands"):
        return {
            name: _for_command(one, for_all, own.get(name, {}), (file, f"{section} [{name}]"), used)
            for name, one in command.commands.items()
        }
    options = _options(command)
    for name in own:
        if name not in options:
            raise InputError(f"{where} has no option '{short(name)}'.{did_you_mean(name, options)}")
        if isinstance(own[name], Mapping):
            raise InputError(f"{where}: '{short(name)}' is a table. Write {short(name)} = value.")
    given = {name: value for name, value in for_all.items() if name in options} | dict(own)
    for name, value in given.items():
        if "\0" in str(value):
            raise InputError(f"{where}: {name} holds a NUL character. Take it out.")
        _check_value(options[name], value, f"{where if name in own else file}: {name}")
    used.update(given)
    return {options[name].name: _word(value) for name, value in given.items()}


def _check_value(parameter: Parameter, value: object, what: str) -> None:
    """Raise where a value is none that could be typed after its option."""
    is_flag = bool(getattr(parameter, "is_flag", False))
    if parameter.nargs != 1 or (is_flag and isinstance(value, bool)):
        return
    if is_flag or isinstance(value, bool) or not _takes(parameter, _word(value)):
        known = [kind for word, kind in KINDS if not is_flag and _takes(parameter, word)]
        raise InputError(f"{what} = {_shown(value)} must be {[*known, 'true or false'][0]}.")


def _takes(parameter: Parameter, word: object) -> bool:
    try:
        parameter.process_value(None, word)
    except typer.BadParameter:
        return False
    return True


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else shown(value)


def _options(command: Command) -> dict[str, Parameter]:
    """Return a command's options by what people type, without the dashes."""
    if hasattr(command, "commands"):
        return {n: p for one in command.commands.values() for n, p in _options(one).items()}
    return {
        word.lstrip("-"): parameter
        for parameter in command.params
        for word in parameter.opts
        if word.startswith("--") or not word.startswith("-")
    }


def _word(value: object) -> object:
    """Return a value as it would be typed."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, bool) else str(value)


def typed(command: object, given: Mapping[str, object], words: list[str]) -> list[str]:
    """Return the options that a file gave as words, but for those that were typed as well."""
    said = []
    for parameter in getattr(command, "params", []):
        value = given.get(parameter.name)
        options = [word for word in parameter.opts if word.startswith("-")]
        against = list(getattr(parameter, "secondary_opts", ()))
        if value is None or not options or _is_said([*options, *against], words):
            continue
        if isinstance(value, bool):
            said += (options if value else against)[:1]
        else:
            said += [options[0], str(value)]
    return said


def _is_said(options: list[str], words: list[str]) -> bool:
    return any(word == o or word.startswith(f"{o}=") for word in words for o in options)
