"""What a phone was like before we changed it, kept on the phone itself until it is so again.

Host or cable may fail at any moment; whoever connects next finds the file and repairs the phone.
"""

from __future__ import annotations

import shlex
from typing import Literal

from profiler import codec
from profiler.devices.android.settings import RunCommand
from profiler.errors import DeviceError, InvalidRecord
from profiler.records.record import Record

FOLDER = "/data/local/tmp/ondevice-profiler"
FILE = f"{FOLDER}/restore.json"


SettingName = Literal[
    "low_power", "stay_on_while_plugged_in", "screen_off_timeout", "screen_brightness_mode", "screen_brightness"
]


class FormerSetting(Record):
    """One setting: what it was, None where it was never set, and what we made of it."""

    name: SettingName
    former: int | None
    ours: int


class Former(Record):
    """Every setting that is changed, in the order of change, and whether the screen was on."""

    schema_version: Literal[1, 2] = 1
    was_awake: bool | None
    settings: tuple[FormerSetting, ...]


def write_former(run: RunCommand, former: Former) -> None:
    """Write the file as a whole or not at all. Raises DeviceError where the phone does not hold it."""
    text = codec.encode(former).decode()
    new = f"{FILE}.new"
    said = run(
        # In brackets, so that a redirection behind it holds for all of it. Old versions' dd cannot flush: then the
        # system does, some seconds later.
        f"( J={shlex.quote(text)}; mkdir -p {FOLDER} && "
        f'{{ printf %s "$J" | dd of={new} conv=fsync 2>/dev/null || printf %s "$J" > {new}; }} && '
        f"mv -f {new} {FILE} && cat {FILE} )"
    )
    if said.strip() != text:
        raise DeviceError(
            f"the phone cannot keep {FILE}, by which it is restored after a failure: {said.strip() or 'no answer'}",
            hint=f"Free some storage on it, or look at: adb shell ls -l {FOLDER}",
        )


def read_former(run: RunCommand, who: str) -> Former | None:
    """Return what an earlier session left on the phone, None where nothing. Raises DeviceError for anything else."""
    text = run(f"[ ! -e {FILE} ] || cat {FILE}").strip()
    if not text:
        return None
    try:
        return codec.decode(text.encode(), Former, where=FILE)
    except InvalidRecord as error:
        raise DeviceError(
            f"{who} holds {FILE}, in which an earlier session wrote what to restore, but it cannot be read",
            hint=f"Check the phone's screen and power saving settings, then: adb shell rm {FILE}",
        ) from error


def forget_former(run: RunCommand) -> None:
    """Remove the file: the phone is as it was."""
    run(f"rm -f {FILE}")
