from __future__ import annotations

import pytest

from profiler.devices.android.launching import Installed, Launch, Refusal, read_install, read_launch
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def test_a_cold_start_is_read_with_its_times() -> None:
    assert read_launch(capture("am_start_cold")) == Launch("cold", "com.example.runner/.RunnerActivity", 482, 497, None)


def test_an_activity_that_ran_already_is_a_warning_and_times_of_0_are_missing() -> None:
    launch = read_launch(capture("am_start_front"))
    assert isinstance(launch, Launch)
    assert (launch.state, launch.total_ms) == ("hot", None)
    assert "brought to the front" in str(launch.warning)


def test_an_android_before_10_names_no_state() -> None:
    launch = read_launch("Status: ok\nActivity: a/.B\nThisTime: 5\nTotalTime: 5\nWaitTime: 9\nComplete\n")
    assert isinstance(launch, Launch)
    assert (launch.state, launch.total_ms) == ("unknown", 5)


@pytest.mark.parametrize(
    ("text", "code", "advice"),
    [
        (capture("am_start_missing"), "does not exist", "install it again"),
        (capture("am_start_timeout"), "timeout", "look at the phone's screen"),
        ("Error: Activity not started, unable to resolve Intent { }\n", "unable to resolve", "install it again"),
        ("java.lang.SecurityException: Permission Denial: starting Intent\n", "SecurityException", "forbids"),
        ("Exception occurred while executing 'start':\n", "Exception occurred", "screen"),
        ("Error type -92\n", "Error type -92", "screen"),
        ("Killed\n", "Killed", "restart the phone"),
    ],
)
def test_an_error_counts_although_the_exit_code_is_0(text: str, code: str, advice: str) -> None:
    refusal = read_launch(text)
    assert isinstance(refusal, Refusal)
    assert code in refusal.code
    assert advice in refusal.what_to_do
    assert refusal.raw == text


@pytest.mark.parametrize("text", ["", "Starting: Intent { }\n", "LaunchState: COLD\n"])
def test_a_start_without_status_is_unavailable(text: str) -> None:
    assert isinstance(read_launch(text), Unavailable)


@pytest.mark.parametrize("text", ["Success\n", "Performing Streamed Install\r\nSuccess\r\n"])
def test_a_successful_install_is_one(text: str) -> None:
    assert read_install(text) == Installed()


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("INSTALL_FAILED_USER_RESTRICTED", "allow it on its screen"),
        ("INSTALL_FAILED_UPDATE_INCOMPATIBLE", "adb uninstall org.example"),
        ("INSTALL_FAILED_INSUFFICIENT_STORAGE", "delete files"),
        ("INSTALL_FAILED_NO_MATCHING_ABIS", "arm64-v8a"),
        ("INSTALL_FAILED_VERSION_DOWNGRADE", "is newer than this one"),
        ("INSTALL_FAILED_TEST_ONLY", "install -t"),
        ("INSTALL_FAILED_INVALID_APK", "build or download it again"),
        ("INSTALL_PARSE_FAILED_NOT_APK", "build or download it again"),
        ("INSTALL_FAILED_VERIFICATION_FAILURE", "Verify apps over USB"),
        ("INSTALL_FAILED_OLDER_SDK", "API 29"),
        ("INSTALL_CANCELED_BY_USER", "allow it"),
        ("INSTALL_FAILED_SOMETHING_NEW", "Look the code up"),
    ],
)
def test_each_failure_says_what_to_do(code: str, advice: str) -> None:
    text = f"Performing Streamed Install\nadb: failed to install x.apk: Failure [{code}: because of this]\n"
    refusal = read_install(text, "org.example")
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.detail) == (code, "because of this")
    assert advice in refusal.what_to_do


def test_a_failure_without_a_code_keeps_its_words() -> None:
    refusal = read_install("Failure [-99]\n")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "-99"


def test_a_full_phone_may_say_so_in_other_words() -> None:
    refusal = read_install("adb: error: failed to copy: couldn't write file: No space left on device\n")
    assert isinstance(refusal, Refusal)
    assert "storage is full" in refusal.what_to_do


@pytest.mark.parametrize("text", ["", "Performing Streamed Install\n", "Successful\n"])
def test_an_installer_that_says_neither_is_unavailable(text: str) -> None:
    assert isinstance(read_install(text), Unavailable)
