"""`pm`: which packages there are, installing and removing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.phones.android.apps_contract import Apps, InstallRefusedError
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.model import DeviceModel

_OF_THE_SYSTEM = {
    "android": "/system/framework/framework-res.apk",
    "com.android.settings": "/system_ext/priv-app/Settings/Settings.apk",
    "com.android.systemui": "/system_ext/priv-app/SystemUI/SystemUI.apk",
    "com.android.shell": "/system/priv-app/Shell/Shell.apk",
}
_RESTRICTED = "INSTALL_FAILED_USER_RESTRICTED: Install canceled by user"


def pm(model: DeviceModel, apps: Apps, words: Sequence[str], stdin: bytes = b"") -> Answer:
    """Run one of the package manager's commands."""
    match list(words):
        case ["list", "packages", *rest]:
            return _list(apps, rest)
        case ["path", package]:
            path = (_OF_THE_SYSTEM | dict(apps.installed())).get(package)
            return said(f"package:{path}") if path else Answer(b"", b"", 1)
        case ["install", *rest]:
            return _install(model, apps, rest, stdin)
        case ["uninstall", *rest] if names := _names(rest):
            done = apps.uninstall(names[0])
            return said("Success") if done else said("Failure [DELETE_FAILED_INTERNAL_ERROR]", 1)
        case ["clear", *rest] if names := _names(rest):
            return said("Success") if apps.clear(names[0]) else said("Failed", 1)
        case ["list", *_]:
            return complained("Error: unknown list type", 255)
    return complained(f"Unknown command: {words[0] if words else ''}\nPackage manager (package) commands:\n  help", 255)


def _list(apps: Apps, words: Sequence[str]) -> Answer:
    own, everything = apps.installed(), _OF_THE_SYSTEM | dict(apps.installed())
    shown = own if "-3" in words else _OF_THE_SYSTEM if "-s" in words else everything
    wanted = _names(words)
    found = sorted(name for name in shown if all(part in name for part in wanted))
    codes = apps.versions() if "--show-versioncode" in words else {}
    lines = [f"package:{shown[name]}={name}" if "-f" in words else f"package:{name}" for name in found]
    return said("\n".join(line + _coded(codes, name) for line, name in zip(lines, found, strict=True)))


def _coded(codes: Mapping[str, int], name: str) -> str:
    return f" versionCode:{codes[name]}" if name in codes else ""


def _install(model: DeviceModel, apps: Apps, words: Sequence[str], stdin: bytes) -> Answer:
    """Install from a path of the phone, or (`-S SIZE`) from what is streamed in."""
    if model.persona.dialect.user_restricted_install:
        return said(f"Failure [{_RESTRICTED}]", 1)
    words = list(words)
    streamed = "-S" in words
    if streamed:
        at = words.index("-S")
        size = int(words[at + 1]) if words[at + 1 : at + 2] and words[at + 1].isdigit() else -1
        del words[at : at + 2]
        if size != len(stdin):
            text = f"INSTALL_FAILED_INVALID_APK: streamed {len(stdin)} bytes of {size}"
            return said(f"Failure [{text}]", 1)
    paths = _names(words)
    if not streamed and not paths:
        return complained("Error: must either specify a package size or an APK file", 1)
    try:
        downgrade = "-d" in words
        _ = apps.install(stdin, downgrade=downgrade) if streamed else apps.install_from(paths[0], downgrade=downgrade)
    except InstallRefusedError as refusal:
        return said(f"Failure [{refusal}]", 1)
    except FileNotFoundError:
        return complained(f"Error: Unable to open file: {paths[0]}", 1)
    return said("Success")


def _names(words: Sequence[str]) -> list[str]:
    """Return what is neither an option nor the value of one."""
    found, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("--user", "-i", "--install-location", "--abi"):
            skip = True
        elif not word.startswith("-"):
            found.append(word)
    return found
