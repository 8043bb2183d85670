from __future__ import annotations

import pytest

from profiler.devices.android.storage import read_file_systems
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture

KIB, GIB = 1024, 1024**3


@pytest.mark.parametrize(
    ("name", "mount", "total", "used", "free"),
    [
        ("df_toybox", "/data", 114_073_624 * KIB, 40_265_532 * KIB, 73_676_708 * KIB),
        ("df_wrapped", "/data", 114_073_624 * KIB, 40_265_532 * KIB, 73_676_708 * KIB),
        ("df_toolbox", "/data", 12 * GIB, int(3.5 * GIB), int(8.5 * GIB)),
        ("df_human", "/data", 109 * GIB, 39 * GIB, 70 * GIB),
    ],
)
def test_every_tools_table_is_read(name: str, mount: str, total: int, used: int, free: int) -> None:
    systems = read_file_systems(capture(name))
    assert not isinstance(systems, Unavailable)
    first = systems[0]
    assert (first.mounted_on, first.total_bytes, first.used_bytes, first.free_bytes) == (mount, total, used, free)


def test_every_file_system_is_listed_and_a_mount_may_hold_spaces() -> None:
    systems = read_file_systems(capture("df_toybox") + "/dev/x 10 5 5 50% /mnt/my card\nnone - - - - /odd\n")
    assert not isinstance(systems, Unavailable)
    assert [system.mounted_on for system in systems] == ["/data", "/storage/emulated", "/mnt/my card"]


def test_blocks_of_512_bytes_are_counted_as_such() -> None:
    systems = read_file_systems("Filesystem 512-blocks Used Available Capacity Mounted on\n/dev/x 10 4 6 40% /data\n")
    assert not isinstance(systems, Unavailable)
    assert systems[0].free_bytes == 6 * 512


def test_a_number_without_a_suffix_below_a_plain_heading_counts_bytes() -> None:
    systems = read_file_systems("Filesystem Size Used Avail Use% Mounted on\n/dev/x 512 0 512 0% /data\n")
    assert not isinstance(systems, Unavailable)
    assert tuple(systems[0])[2:] == (512, 0, 512)


@pytest.mark.parametrize(
    "text",
    ["", "df: /data/local/tmp: Permission denied\n", "Filesystem 1K-blocks Used Available Use% Mounted on\n"],
)
def test_an_unknown_shape_is_unavailable(text: str) -> None:
    assert isinstance(read_file_systems(text), Unavailable)
