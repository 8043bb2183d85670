"""The phone's programs: mksh and toybox, the family that Android uses, in a folder that is `/` to them.

As root the folder is entered by chroot as uid 2000, so that permissions are the kernel's. Programs that know the phone
(`getprop`, `dumpsys`, `am` …) are small scripts that ask the simulator over a unix socket below `/.sim`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.phones.android.ask_server import FOLDER, SCRIPT
from tests.phones.android.rootfs import SHELL_UID

_PATH = "/product/bin:/apex/com.android.runtime/bin:/system/bin:/vendor/bin"
_ENVIRONMENT = {
    "PATH": _PATH,
    "HOME": "/",
    "USER": "shell",
    "LOGNAME": "shell",
    "SHELL": "/bin/sh",
    "TMPDIR": "/data/local/tmp",
    "ANDROID_ROOT": "/system",
    "ANDROID_DATA": "/data",
    "EXTERNAL_STORAGE": "/sdcard",
    "TERM": "xterm-256color",
}
_ASKING = "system/lib/asking"
_PATHS = re.compile(rb"(?<![\w./-])/(?:data|sdcard|storage|system|proc|sys|vendor|etc)(?=[/\s'\";)]|$)")
_FOLDERS = {
    "system/bin": 0o755, _ASKING: 0o755, "system/etc": 0o755, "vendor/bin": 0o755,
    "dev": 0o755, "proc": 0o755, "sys": 0o755,
    "data": 0o771, "data/local": 0o751, "data/local/tmp": 0o771, "data/app": 0o771, "data/data": 0o771,
    "storage/emulated/0/Android/data": 0o777, "storage/emulated/0/Download": 0o777, FOLDER: 0o755,
}  # fmt: skip
_OWNED_BY_SHELL = (
    "data/local/tmp",
    "storage/emulated/0",
    "storage/emulated/0/Android",
    "storage/emulated/0/Android/data",
)
_LINKS = {"sdcard": "storage/emulated/0", "bin": "system/bin", "etc": "system/etc"}
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
# Of toybox's programs those that Android has too and a host may have a use for: each is a link, made for every phone.
_TOOLS = (
    "[", "base64", "basename", "cat", "chmod", "chown", "cksum", "cmp", "comm", "cp", "cut", "dd", "dirname",
    "du", "echo", "egrep", "env", "expr", "fallocate", "false", "fgrep", "file", "find", "fsync", "getconf",
    "grep", "groups", "gunzip", "head", "hostname", "id", "kill", "ln", "logname", "ls", "md5sum", "mkdir",
    "mkfifo", "mktemp", "mv", "nc", "nice", "nl", "nohup", "nproc", "od", "paste", "patch", "printenv",
    "printf", "pwd", "readlink", "realpath", "renice", "rev", "rm", "rmdir", "sed", "seq", "setsid", "sha1sum",
    "sha256sum", "sha512sum", "sleep", "sort", "split", "strings", "tac", "tail", "tar", "taskset", "tee",
    "test", "time", "timeout", "touch", "true", "truncate", "tty", "uname", "uniq", "usleep", "wc", "which",
    "whoami", "xargs", "xxd", "yes", "zcat",
)  # fmt: skip

_SYNC = r"""#!{shell}
# The real one would flush every disk of this machine.
[[ $# -gt 0 ]] && exec {toybox} fsync "$@"
exit 0
"""
_STAT = r"""#!{shell}
[[ $1 = -f* ]] && exec {asking}/stat "$@"
exec {toybox} stat "$@"
"""


def needs() -> list[str]:
    """Return the Debian packages that are missing for the full userland."""
    return [name for name in ("mksh", "toybox") if shutil.which(name) is None]


class Userland:
    """The programs of one phone, whose `/` is `root`; `entered` tells whether they see it as theirs, by chroot.

    Where they do not (only root can do that to them) device paths in what they are given are rewritten, which is a
    guess at what is a path, and all runs as the user that we are.
    """

    def __init__(self, root: Path, *, entered: bool | None = None) -> None:
        self.root = root
        self.entered = os.geteuid() == 0 if entered is None else entered
        self.started: set[int] = set()

    def build(self, names: Iterable[str]) -> None:
        """Lay out folders and programs, with a script for each of `names` that asks the simulator."""
        self.root.chmod(0o755)
        for folder, mode in _FOLDERS.items():
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            (self.root / folder).chmod(mode)
        for link, target in _LINKS.items():
            (self.root / link).symlink_to(target)
        _install_programs(self.root)
        self._write_scripts(names)
        _write_accounts(self.root / "system/etc")
        if self.entered:
            _make_devices(self.root / "dev")
        if os.geteuid() == 0:
            for folder in _OWNED_BY_SHELL:
                os.chown(self.root / folder, SHELL_UID, SHELL_UID)

    def seen_as(self, path: str) -> str:
        """Return what the programs call a device path."""
        return path if self.entered else f"{self.root}{path}"

    def argv(self, command: str) -> list[str]:
        """Return what runs `command` (empty: what comes on standard input) as the phone's shell user."""
        arguments = ["-c", os.fsdecode(self.given(os.fsencode(command)))] if command else ["-"]
        if self.entered:
            who = f"--userspec={SHELL_UID}:{SHELL_UID}"
            return [_host_program("chroot"), who, str(self.root), "/system/bin/sh", *arguments]
        return [self.seen_as("/system/bin/sh"), *arguments]

    def environment(self) -> dict[str, str]:
        """Return the environment of the shell on a phone."""
        if self.entered:
            return _ENVIRONMENT
        return {**_ENVIRONMENT, "PATH": self.seen_as("/system/bin"), "TMPDIR": self.seen_as("/data/local/tmp")}

    def given(self, text: bytes) -> bytes:
        """Return commands as the shell is to be given them."""
        return text if self.entered else _PATHS.sub(os.fsencode(self.root) + rb"\g<0>", text)

    def printing(self) -> Callable[[bytes], bytes]:
        """Return what turns pieces of output into what the phone is to have printed; the last piece is empty."""
        held = b""

        def printed(piece: bytes) -> bytes:
            nonlocal held
            if self.entered:
                return piece
            # A path may be cut in two, a line of text ends whole.
            whole, newline, rest = (held + piece).rpartition(b"\n") if piece else (held, b"", b"")
            held = rest
            return (whole + newline).replace(os.fsencode(self.root), b"")

        return printed

    def end_all(self) -> None:
        """Kill what was started, and whatever else has the folder for its `/`, having left its shell behind."""
        for kill, pids in ((os.killpg, self.started.copy()), (os.kill, _processes_in(self.root))):
            for pid in pids:
                try:
                    kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it ended meanwhile

    def _write_scripts(self, names: Iterable[str]) -> None:
        places = {
            "shell": self.seen_as("/system/bin/sh"), "toybox": self.seen_as("/system/bin/toybox"),
            "folder": self.seen_as(f"/{FOLDER}"), "asking": self.seen_as(f"/{_ASKING}"),
        }  # fmt: skip
        asking = SCRIPT.format(**places)
        for path, text in (
            *((f"system/bin/{name}", asking) for name in names),
            (f"{_ASKING}/stat", asking),
            ("system/bin/stat", _STAT.format(**places)),
            ("system/bin/sync", _SYNC.format(**places)),
        ):
            (self.root / path).unlink(missing_ok=True)
            (self.root / path).write_text(text)
            (self.root / path).chmod(0o755)


def _install_programs(root: Path) -> None:
    programs = root / "system/bin"
    toybox, shell = shutil.which("toybox"), shutil.which("mksh")
    if toybox is None or shell is None:
        raise RuntimeError(f"the virtual phone's shell is missing: apt-get install {' '.join(needs())}")
    for source in (toybox, shell):
        shutil.copy(source, programs / Path(source).name)
        _copy_libraries(source, root)
    (programs / "sh").symlink_to("mksh")
    for name in _TOOLS:
        (programs / name).symlink_to("toybox")


def _copy_libraries(program: str, root: Path) -> None:
    for path in _libraries(program):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(path, target)


@functools.cache
def _libraries(program: str) -> frozenset[str]:
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return frozenset(word for word in lines.split() if word.startswith("/"))


def _write_accounts(folder: Path) -> None:
    (folder / "passwd").write_text("root:x:0:0::/:/bin/sh\nshell:x:2000:2000::/:/bin/sh\n")
    (folder / "group").write_text("root:x:0:\nshell:x:2000:\nsdcard_rw:x:1015:\n")


def _make_devices(folder: Path) -> None:
    for name, (major, minor) in _DEVICES.items():
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        (folder / name).chmod(0o666)
    (folder / "stdin").symlink_to("/proc/self/fd/0")


def _host_program(name: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise RuntimeError(f"the virtual phone needs {name} on this machine")
    return found


def _processes_in(root: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "root") == str(root):
                found.append(int(entry.name))
        except OSError:
            pass  # it is gone, or not ours to look at
    return found
