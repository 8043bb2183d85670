"""What the commands need of whoever keeps the installed apps and runs their processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class InstallRefusedError(Exception):
    """The package was not installed; the message is what `pm` prints in brackets: a code, a colon, details."""


class Apps(Protocol):
    """Installed packages and running app processes; who starts a process also tells the model of it."""

    def installed(self) -> Mapping[str, str]:
        """Return the path of each installed package's apk by package."""

    def versions(self) -> Mapping[str, int]:
        """Return the version code of each installed package."""

    def start(self, component: str, extras: Mapping[str, str]) -> int:
        """Start `package/class` and return the pid; LookupError where there is no such activity."""

    def stop(self, package: str) -> None:
        """End all processes of a package."""

    def running(self) -> Mapping[int, str]:
        """Return the package of each running process by pid."""

    def install(self, apk: bytes, *, downgrade: bool = False) -> str:
        """Install a package, an older one too if `downgrade`; return its name. Raises InstallRefusedError."""

    def install_from(self, path: str, *, downgrade: bool = False) -> str:
        """Install a package that lies at a path of the phone."""

    def uninstall(self, package: str) -> bool:
        """Remove a package; False where there is none."""

    def clear(self, package: str) -> bool:
        """End a package's processes and remove its files; False where there is none."""
