from __future__ import annotations

import pytest

from profiler import effects
from profiler.quantities import NS_PER_S
from profiler.records.event import StageTime
from profiler.records.job import Measurement
from profiler.records.run import CanarySample, IterationSample
from tests.records_for_tests import BOOT_NS
from tests.runs_for_tests import make_run, make_sample, make_samples


def canary(when: str, duration_ns: int) -> CanarySample:
    return CanarySample(process=0, device_boot_ns=BOOT_NS, when=when, duration_ns=duration_ns)  # type: ignore[arg-type]


def observer(duration_ns: int, *, traced: bool, gap_ns: int | None = 0) -> IterationSample:
    return make_sample(phase="observer", traced=traced, duration_ns=duration_ns, gap_ns=gap_ns)


def test_only_timed_images_are_timed() -> None:
    samples = make_samples() + make_samples(phase="warmup")
    assert effects.timed(make_run(iterations=samples)) == list(make_samples())


def test_the_observer_effect_is_that_of_neighbours_whichever_comes_first() -> None:
    pairs = [(True, 110), (False, 100), (False, 200), (True, 210), (True, 330), (False, 300)]
    images = tuple(observer(ns, traced=traced) for traced, ns in pairs)
    effect = effects.observer_effect(make_run(iterations=images))
    assert effect is not None
    assert (effect.n, effect.median) == (3, pytest.approx(1.1))


@pytest.mark.parametrize("times", [(), (100,), (0, 0)])
def test_half_pairs_and_images_without_time_say_nothing(times: tuple[int, ...]) -> None:
    images = tuple(observer(ns, traced=number == 0) for number, ns in enumerate(times))
    assert effects.observer_effect(make_run(iterations=images)) is None


def test_images_after_a_pause_are_held_against_those_without_sampled_alike() -> None:
    rested = make_samples((120,) * 4, gap_ns=NS_PER_S)
    pressed = tuple(observer(ns, traced=traced) for traced, ns in [(True, 100), (False, 999)] * 4)
    ratio = effects.after_gap(make_run(iterations=rested + pressed))
    assert ratio is not None
    assert (ratio.ratio, ratio.n_above, ratio.n_below) == (pytest.approx(1.2), 4, 4)


def test_without_a_pause_or_without_a_series_there_is_nothing_to_compare() -> None:
    assert effects.after_gap(make_run()) is None
    assert effects.after_gap(make_run(iterations=make_samples(gap_ns=NS_PER_S))) is None
    first = make_samples(gap_ns=None)
    assert effects.after_gap(make_run(iterations=first)) is None


def test_the_canary_at_the_end_is_held_against_its_best_cool_time() -> None:
    canaries = (canary("cool", 100), canary("between", 100), canary("cool", 105))
    canaries += tuple(canary("between", ns) for ns in (110, 130, 150, 140, 160))
    assert effects.canary_ratio(make_run(canaries=canaries)) == pytest.approx(1.5)


@pytest.mark.parametrize("when", ["cool", "between"])
def test_a_canary_without_its_counterpart_says_nothing(when: str) -> None:
    assert effects.canary_ratio(make_run(canaries=(canary(when, 100),))) is None
    assert effects.canary_ratio(make_run()) is None
    assert effects.canary_ratio(make_run(canaries=(canary("cool", 0), canary("between", 0)))) is None


def test_fewer_than_three_images_have_no_trend() -> None:
    assert effects.trend(make_run(iterations=make_samples((100, 100)))) is None
    assert effects.trend(make_run(iterations=make_samples((100, 100, 100)))) is not None


def test_moments_count_from_the_first_timed_image() -> None:
    samples = make_samples((NS_PER_S, NS_PER_S, NS_PER_S))
    assert effects.start_seconds(make_run(iterations=samples)) == [0.0, 1.0, 2.0]
    assert effects.start_seconds(make_run(iterations=())) == []


def test_the_stage_that_grew_most_is_named_with_its_ratio() -> None:
    def image(text_ns: int, denoise_ns: int) -> IterationSample:
        stages = (StageTime(stage="text", duration_ns=text_ns), StageTime(stage="denoise", duration_ns=denoise_ns))
        return make_sample(duration_ns=text_ns + denoise_ns, stages=stages)

    images = (image(10, 100), image(10, 110), image(11, 150))
    assert effects.slowest_stage(make_run(iterations=images)) == ("denoise", pytest.approx(1.5))
    assert effects.slowest_stage(make_run(iterations=())) is None


def test_in_a_spaced_run_every_timed_image_follows_a_pause_however_short() -> None:
    spaced = Measurement(kind="spaced", gap_s=0.5)
    rested = make_samples((120,) * 4, gap_ns=NS_PER_S // 2)
    pressed = tuple(observer(100, traced=True) for _ in range(4))
    ratio = effects.after_gap(make_run(measurement=spaced, iterations=rested + pressed))
    assert ratio is not None
    assert (ratio.ratio, ratio.n_above, ratio.n_below) == (pytest.approx(1.2), 4, 4)
