"""What can be installed on the virtual phone: any zip that says which package and version it is."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import NamedTuple

from tests.phones.android.apps_contract import InstallRefusedError

MANIFEST = "AndroidManifest.txt"
_NAME = re.compile(r"(?P<package>[A-Za-z][\w.]*\.\w+)-(?P<version>\d+)\.apk")


class Apk(NamedTuple):
    """What a package file says of itself; `activities` are those that may be started, `.Name` for one of its own."""

    package: str
    version_code: int
    version_name: str
    activities: tuple[str, ...]


def write_apk(
    path: Path, package: str, version_code: int, *, activities: tuple[str, ...] = (".RunnerActivity",)
) -> Path:
    """Write a file that the virtual phone installs, and return its path."""
    lines = [f"package={package}", f"versionCode={version_code}", *(f"activity={name}" for name in activities)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MANIFEST, "\n".join(lines) + "\n")
    return path


def read_apk(path: Path, name: str = "") -> Apk:
    """Read package and version from the manifest in the zip, else from a `name` such as `org.example.app-7.apk`.

    Raises InstallRefusedError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(MANIFEST).decode() if MANIFEST in archive.namelist() else ""
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError):
        raise InstallRefusedError(f"INSTALL_PARSE_FAILED_NOT_APK: Failed to parse {name or path.name}") from None
    if text:
        return _from_manifest(text)
    match = _NAME.fullmatch(name or path.name)
    if match is None:
        raise InstallRefusedError(f"INSTALL_PARSE_FAILED_UNEXPECTED_EXCEPTION: Failed to parse {name}: no {MANIFEST}")
    return Apk(match["package"], int(match["version"]), match["version"], (".RunnerActivity",))


def _from_manifest(text: str) -> Apk:
    pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line]
    said = dict(pairs)
    if not said.get("package") or not said.get("versionCode", "").isdigit():
        raise InstallRefusedError(
            f"INSTALL_PARSE_FAILED_MANIFEST_MALFORMED: {MANIFEST} names no package and versionCode"
        )
    return Apk(
        said["package"],
        int(said["versionCode"]),
        said.get("versionName", said["versionCode"]),
        tuple(value for key, value in pairs if key == "activity"),
    )
