"""An initramfs: a cpio archive, written member by member."""

from __future__ import annotations

import re
import stat
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SYSTEM = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64")


class Image:
    """Files, folders and links of the archive, by path without the first slash."""

    def __init__(self, folders: list[Path]) -> None:
        """Shared libraries are looked for in `folders` first, then on this machine."""
        self._members: dict[str, tuple[int, bytes]] = {}
        self._folders = folders

    def folder(self, name: str) -> None:
        """Make a folder, and those above it."""
        for parent in _parents(name + "/x"):
            self._members.setdefault(parent, (stat.S_IFDIR | 0o755, b""))

    def text(self, name: str, content: str, mode: int = 0o755) -> None:
        """A file with this content."""
        self._add(name, stat.S_IFREG | mode, content.encode())

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def file(self, name: str, source: Path) -> None:
        """A file of this machine, with the shared libraries that it needs."""
        content = source.read_bytes()
        self._add(name, stat.S_IFREG | 0o755, content)
        if content[:4] == b"\x7fELF" and not name.endswith(".ko"):
            for library in _needed(source):
                self.library(library)

    def library(self, name: str) -> None:
        """A shared library by its name, where the loader looks for it."""
        is_loader = name.startswith("ld-linux")
        where = f"lib64/{name}" if is_loader else f"lib/x86_64-linux-gnu/{name}"
        if where in self._members:
            return
        for folder in [*self._folders, *map(type(self._folders[0]), _SYSTEM)]:
            if (folder / name).exists():
                self.file(where, (folder / name).resolve())
                return
        raise FileNotFoundError(f"no {name} for the test's machine")

    def write(self, path: Path) -> None:
        """Write the archive, in the format that the kernel calls newc."""
        with path.open("wb") as out:
            for number, (name, (mode, content)) in enumerate(self._members.items()):
                out.write(_member(number + 1, name, mode, content))
            out.write(_member(0, "TRAILER!!!", 0, b""))

    def _add(self, name: str, mode: int, content: bytes) -> None:
        for parent in _parents(name):
            self._members.setdefault(parent, (stat.S_IFDIR | 0o755, b""))
        self._members[name] = (mode, content)


def _parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def _needed(program: Path) -> list[str]:
    """The shared libraries and the loader that an ELF file asks for."""
    said = subprocess.run(
        ["readelf", "-d", "-l", str(program)], capture_output=True, text=True, check=True
    ).stdout
    loader = re.findall(r"interpreter: /lib64/([^]]+)]", said)
    return re.findall(r"\(NEEDED\).*\[(.+)]", said) + loader


def _member(number: int, name: str, mode: int, content: bytes) -> bytes:
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
