"""The packages on the virtual phone, and what its package manager checks before it takes one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.phones.android.apps_contract import InstallRefusedError
from tests.phones.android.packages import Apk, read_apk
from tests.phones.android.rootfs import Rootfs

_FIRST_APP_UID = 10234


class Package(NamedTuple):
    """One installed package; `path` is its file on the phone."""

    apk: Apk
    uid: int
    path: str


class Installed:
    """Packages by name. A test may order how the next installation fails."""

    def __init__(self, files: Rootfs, free_bytes: Callable[[], int]) -> None:
        self.next_failure: str | None = None
        self._files = files
        self._free_bytes = free_bytes
        self._packages: dict[str, Package] = {}
        self._count = 0

    def __getitem__(self, name: str) -> Package:
        return self._packages[name]

    def paths(self) -> dict[str, str]:
        """Return the device path of each package's file."""
        return {name: package.path for name, package in self._packages.items()}

    def install(self, content: bytes, *, downgrade: bool = False, name: str = "") -> Apk:
        """Take a package file; `name` is what it is called, if that is known. Raises InstallRefusedError."""
        ordered, self.next_failure = self.next_failure, None
        if ordered:
            raise InstallRefusedError(ordered)
        if len(content) > self._free_bytes():
            raise InstallRefusedError("INSTALL_FAILED_INSUFFICIENT_STORAGE: Failed to override installation location")
        self._count += 1
        file = self._files.root / "data/app" / f"vmdl{self._count}.tmp"
        file.write_bytes(content)
        try:
            apk = read_apk(file, name)
            self._refuse_older(apk, downgrade=downgrade)
            self.add(apk, file)
        finally:
            file.unlink(missing_ok=True)
        return apk

    def install_from(self, path: str, *, downgrade: bool = False) -> Apk:
        """Take a package file that lies on the phone; FileNotFoundError where there is none that may be read."""
        try:
            with os.fdopen(self._files.open(path, os.O_RDONLY), "rb") as source:
                content = source.read()
        except OSError as error:
            raise FileNotFoundError(path) from error
        return self.install(content, downgrade=downgrade, name=os.path.basename(path))

    def add(self, apk: Apk, content: Path | None = None) -> None:
        """Note a package in place of an older one; `content` is its file, which is moved in."""
        before = self._packages.get(apk.package)
        folder = f"/data/app/~~phone==/{apk.package}-{apk.version_code}"
        host = self._files.host_path(folder)
        host.mkdir(parents=True, exist_ok=True)
        if content is not None:
            content.rename(host / "base.apk")
        uid = before.uid if before else _FIRST_APP_UID + len(self._packages)
        self._packages[apk.package] = Package(apk, uid, f"{folder}/base.apk")

    def remove(self, name: str) -> bool:
        """Take a package and its files off the phone; False if it is not there."""
        package = self._packages.pop(name, None)
        if package is None:
            return False
        shutil.rmtree(self._files.host_path(package.path).parent, ignore_errors=True)
        self._remove_data(name)
        return True

    def clear(self, name: str) -> bool:
        """Remove a package's own files; False if it is not there."""
        if name in self._packages:
            self._remove_data(name)
        return name in self._packages

    def _remove_data(self, name: str) -> None:
        shutil.rmtree(self._files.host_path(f"/sdcard/Android/data/{name}"), ignore_errors=True)

    def _refuse_older(self, apk: Apk, *, downgrade: bool) -> None:
        there = self._packages.get(apk.package)
        if there and apk.version_code < there.apk.version_code and not downgrade:
            raise InstallRefusedError(
                "INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code "
                f"{apk.version_code} is older than current {there.apk.version_code}"
            )
