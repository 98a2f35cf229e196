"""Profiles: named clusters in a TOML file of the user, with Kafka's names for what each one has.

A profile has the keys that have an effect and no others: a security key that nothing reads would
promise protection that is not there.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ottla.cli.tasks.client_options import Misuse

SERVERS: Final = "bootstrap.servers"
# Every key of a profile. Keys of security belong here once the client reads them.
KEYS: Final = (SERVERS,)
NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Profiles:
    path: Path
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    in_use: str | None = None

    @classmethod
    def load(cls) -> "Profiles":
        """The user's profiles, none if there is no file; raises Misuse for a bad one."""
        path = profiles_file()
        if not path.exists():
            return cls(path)
        import tomllib

        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Misuse(f"{path}: {error}") from None
        named = content.pop("profiles", {})
        in_use = content.pop("use", None)
        if content or not isinstance(named, dict) or not isinstance(in_use, str | None):
            raise Misuse(f"{path}: expected 'use' and tables like [profiles.NAME]")
        for name, keys in named.items():
            _check(f"{path}: profile {name}", keys)
        return cls(path, named, in_use)

    def get(self, name: str) -> Mapping[str, str]:
        if name in self.named:
            return self.named[name]
        known = ", ".join(sorted(self.named))
        there = f"there are {known}" if known else "make one with 'ottla profile add'"
        raise Misuse(f"there is no profile {name!r}; {there}")

    def bootstrap_of(self, name: str) -> str:
        return self.get(name)[SERVERS]

    def bootstrap_in_use(self) -> str | None:
        """Servers of the profile that OTTLA_PROFILE or `ottla profile use` names, or None."""
        name = chosen_name(self)
        return None if name is None else self.bootstrap_of(name)

    def with_profile(self, name: str, servers: str) -> "Profiles":
        from ottla.client.session import parse_addresses

        if not NAME.fullmatch(name):
            raise Misuse(f"{name!r} is no name of a profile: use letters, digits, - and _")
        try:
            parse_addresses(servers)
        except ValueError as error:
            raise Misuse(str(error)) from None
        in_use = self.in_use if self.named else name  # The first one is in use at once.
        return replace(self, named={**self.named, name: {SERVERS: servers}}, in_use=in_use)

    def without(self, name: str) -> "Profiles":
        self.get(name)
        rest = {other: keys for other, keys in self.named.items() if other != name}
        return replace(self, named=rest, in_use=None if self.in_use == name else self.in_use)

    def using(self, name: str) -> "Profiles":
        self.get(name)
        return replace(self, in_use=name)

    def save(self) -> None:
        """Replace the file; readable only by the user, as it may hold secrets one day."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.as_toml())
        draft.replace(self.path)

    def as_toml(self) -> str:
        lines = ["# Written by 'ottla profile'."]
        if self.in_use is not None:
            lines.append(f"use = {json.dumps(self.in_use)}")
        for name, keys in sorted(self.named.items()):
            lines += ["", f"[profiles.{name}]"]
            lines += [f"{json.dumps(key)} = {json.dumps(keys[key])}" for key in KEYS]
        return "\n".join(lines) + "\n"


def profiles_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME")
    return Path(home or Path.home() / ".config") / "ottla" / "profiles.toml"


def chosen_name(profiles: Profiles) -> str | None:
    """The profile for commands that name none."""
    return os.environ.get("OTTLA_PROFILE") or profiles.in_use


def _check(where: str, keys: object) -> None:
    if not isinstance(keys, dict) or not isinstance(keys.get(SERVERS), str):
        raise Misuse(f'{where} lacks "{SERVERS}", a text like "localhost:9092"')
    for key in keys:
        if key not in KEYS:
            raise Misuse(f"{where}: {key} has no effect, so it is refused; known: {SERVERS}")
