"""The phone's programs: mksh and toybox, the family that Android uses, in a folder that is `/` to them.

As root the folder is entered by chroot as uid 2000, so that permissions are the kernel's. Programs that know the phone (`getprop`,
`dumpsys`, `am` …) are small scripts that ask the simulator over a unix socket below `/.sim`.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.phones.android.rootfs import SHELL_UID

PATH = "/product/bin:/apex/com.android.runtime/bin:/system/bin:/vendor/bin"
ENVIRONMENT = {
    "PATH": PATH,
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
_FOLDERS = {
    "system/bin": 0o755, "system/etc": 0o755, "vendor/bin": 0o755, "dev": 0o755, "proc": 0o755, "sys": 0o755,
    "data": 0o771, "data/local": 0o751, "data/local/tmp": 0o771, "data/app": 0o771, "data/data": 0o771,
    "storage/emulated/0/Android/data": 0o777, "storage/emulated/0/Download": 0o777, ".sim": 0o755,
}  # fmt: skip
_OWNED_BY_SHELL = (
    "data/local/tmp",
    "storage/emulated/0",
    "storage/emulated/0/Android",
    "storage/emulated/0/Android/data",
)
_LINKS = {"sdcard": "storage/emulated/0", "bin": "system/bin", "etc": "system/etc"}
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_NOT_FROM_TOYBOX = {"sh", "reboot", "poweroff", "halt", "su", "chroot", "mount", "umount", "insmod", "rmmod", "login"}

# The count goes first, so that an empty argument is one. What cannot go through the one pipe of `nc` (errors, the exit code)
# waits in a file when the connection ends; most answers need none.
_SCRIPT = r"""#!/system/bin/sh
{
  print -n "$$\0000$#\0000${0##*/}\0000"
  for word; do print -nr -- "$word"; print -n '\0000'; done
  case " $* " in *" -S "*) [[ -p /dev/stdin || ! -t 0 ]] && cat ;; esac
} | /system/bin/toybox nc -U /.sim/ask
[[ -e /.sim/$$ ]] && . /.sim/$$
exit 0
"""


class Answer(NamedTuple):
    """What a command of the phone prints, and how it ends."""

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0


Ask = Callable[[Sequence[str], bytes], Answer]


def needs() -> list[str]:
    """Return the Debian packages that are missing for the full userland."""
    return [name for name in ("mksh", "toybox") if shutil.which(name) is None]


def build(root: Path, names: Iterable[str]) -> None:
    """Lay out the phone's folders and programs below `root`, with a script for each of `names`."""
    root.chmod(0o755)
    for folder, mode in _FOLDERS.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder).chmod(mode)
    for link, target in _LINKS.items():
        (root / link).symlink_to(target)
    _install_programs(root)
    _write_scripts(root / "system/bin", names)
    _write_accounts(root / "system/etc")
    if os.geteuid() == 0:
        _make_devices(root / "dev")
        for folder in _OWNED_BY_SHELL:
            os.chown(root / folder, SHELL_UID, SHELL_UID)


def _install_programs(root: Path) -> None:
    programs = root / "system/bin"
    toybox, shell = shutil.which("toybox"), shutil.which("mksh")
    if toybox is None or shell is None:
        raise RuntimeError(f"the virtual phone's shell is missing: apt-get install {' '.join(needs())}")
    for source in (toybox, shell):
        shutil.copy(source, programs / Path(source).name)
        _copy_libraries(source, root)
    (programs / "sh").symlink_to("mksh")
    names = subprocess.run([toybox], capture_output=True, text=True, check=True).stdout.split()
    for name in set(names) - _NOT_FROM_TOYBOX:
        (programs / name).symlink_to("toybox")


def _copy_libraries(program: str, root: Path) -> None:
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for path in {word for word in lines.split() if word.startswith("/")}:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(path, target)


def _write_scripts(programs: Path, names: Iterable[str]) -> None:
    script = programs / ".ask"
    script.write_text(_SCRIPT)
    script.chmod(0o755)
    for name in names:
        (programs / name).unlink(missing_ok=True)
        (programs / name).hardlink_to(script)


def _write_accounts(folder: Path) -> None:
    (folder / "passwd").write_text("root:x:0:0::/:/bin/sh\nshell:x:2000:2000::/:/bin/sh\n")
    (folder / "group").write_text("root:x:0:\nshell:x:2000:\nsdcard_rw:x:1015:\n")


def _make_devices(folder: Path) -> None:
    for name, (major, minor) in _DEVICES.items():
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        (folder / name).chmod(0o666)
    (folder / "stdin").symlink_to("/proc/self/fd/0")


def argv_for(root: Path, command: str) -> list[str]:
    """Return what runs `command` (empty: an interactive shell) as the phone's shell user."""
    shell = ["/system/bin/sh", "-c", command] if command else ["/system/bin/sh", "-i"]
    return [_host_program("chroot"), f"--userspec={SHELL_UID}:{SHELL_UID}", str(root), *shell]


def _host_program(name: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise RuntimeError(f"the virtual phone needs {name} on this machine")
    return found


class Shown:
    """Files of /proc and /sys as the model has them now; None: nobody but the system may read it."""

    def __init__(self, root: Path, files: Callable[[], Mapping[str, bytes | None]]) -> None:
        self._root = root
        self._files = files
        self._written: dict[str, bytes | None] = {}
        self._lock = threading.Lock()
        self._temporary = root / ".sim" / "new"

    def refresh(self) -> None:
        """Write what has changed, each file whole before it is seen, and remove what is gone."""
        with self._lock:
            now = dict(self._files())
            for path in self._written.keys() - now.keys():
                (self._root / path.lstrip("/")).unlink(missing_ok=True)
            for path, content in now.items():
                if path not in self._written or self._written[path] != content:
                    self._write(self._root / path.lstrip("/"), content)
            self._written = now

    def _write(self, target: Path, content: bytes | None) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._temporary.write_bytes(content or b"")
        self._temporary.chmod(0o000 if content is None else 0o444)
        self._temporary.rename(target)


class AskServer:
    """Answer the scripts: one connection a command, on `/.sim/ask`."""

    def __init__(self, root: Path, ask: Ask) -> None:
        self._folder = root / ".sim"
        self._ask = ask
        self._answered: list[Path] = []
        self._listener = _listen_in(self._folder, "ask")

    def start(self) -> None:
        """Serve until closed."""
        threading.Thread(target=self._accept, name="phone-commands", daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # nobody waits in accept
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="phone-command", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            words = incoming.read().split(b"\0", 2)
            if len(words) < 3:
                return
            pid, count = int(words[0]), int(words[1])
            *argv, stdin = words[2].split(b"\0", count + 1)
            answer = self._ask([os.fsdecode(word) for word in argv], stdin)
            self._leave(self._folder / str(pid), answer)
            try:
                connection.sendall(answer.stdout)
            except OSError:
                pass  # `dumpsys … | head -1` does not read to the end

    def _leave(self, note: Path, answer: Answer) -> None:
        note.unlink(missing_ok=True)
        if not answer.stderr and not answer.code:
            return
        errors = note.with_suffix(".err")
        errors.write_bytes(answer.stderr)
        note.write_text(f"cat /.sim/{errors.name} >&2; exit {answer.code}\n")
        self._answered += [note, errors]
        for old in self._answered[:-64]:
            old.unlink(missing_ok=True)
        del self._answered[:-64]


def _listen_in(folder: Path, name: str) -> socket.socket:
    """Listen on a unix socket whose own path may be longer than the 107 bytes that an address takes."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)
    (folder / name).chmod(0o666)
    listener.listen(64)
    return listener
