from __future__ import annotations

from tests.records_for_tests import make_source
from tests.runs_for_tests import make_bundle_use, make_unit
from tests.validity.evidence_for_tests import kinds, only_doubt, sound_run


def test_a_computer_is_named() -> None:
    assert "Test Machine (Linux)" in only_doubt(sound_run(unit=make_unit(is_phone=False))).detail


def test_random_weights_tell_their_seed() -> None:
    run = sound_run(bundle=make_bundle_use(source=make_source(weights_sha256="random:7")))
    assert "seed 7" in only_doubt(run).detail


def test_a_runner_that_calls_itself_virtual_is_believed_whatever_the_phone_says() -> None:
    assert kinds(sound_run(virtual=True)) == ["virtual_device"]


def test_a_phone_without_a_profile_is_named_by_what_it_says_of_itself() -> None:
    unit = make_unit(is_phone=True, profile="android", maker="Fairphone", model="FP6")
    assert "Fairphone FP6" in only_doubt(sound_run(unit=unit)).detail


def test_a_phone_whose_runner_borrowed_this_computer_says_whose_numbers_these_are() -> None:
    phone = make_unit(is_phone=True, virtual=True, platform="android")
    assert "are the computer's" in only_doubt(sound_run(unit=phone, runner_platform="python")).detail
    assert "are the computer's" not in only_doubt(sound_run(unit=phone, runner_platform="android")).detail
