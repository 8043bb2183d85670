from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from profiler import codec
from profiler.catalog import policy
from profiler.quantities import NS_PER_S
from profiler.records import job
from profiler.records.event import StageTime
from profiler.records.run import ImageFile, Run, SystemMemory
from profiler.records.summary import Summary
from profiler.report.summary import protocol_text, stage_medians, summarise
from tests.records_for_tests import BOOT_NS, LATENCIES_NS, SHA_IMAGE, make_memory
from tests.runs_for_tests import make_energy, make_process, make_run, make_sample, make_samples

FOLDER = Path("/store/runs/day/run")


def summary_of(**fields: Any) -> Summary:
    return summarise(make_run(**fields), FOLDER, policy("moi-bench"))


def failed(**fields: Any) -> Run:
    ended = {"outcome": "failed", "reason": "out_of_memory: x", "stage": "denoise", "component": "denoiser"}
    process = make_process(**ended, memory=None, first_image_ns=None)
    return make_run(**{"iterations": (), "processes": (process,), "images": (), **ended, **fields})


def test_a_completed_run_has_its_numbers_and_a_tier() -> None:
    summary = summary_of()
    assert summary.latency_ns is not None
    assert summary.latency_ns.samples == LATENCIES_NS
    assert summary.latency_ns.median == 406_000_000
    assert summary.peak_memory_bytes == 160_000_000
    assert summary.idle_memory_bytes == 40_000_000
    assert summary.tier.tier == "D4"
    assert summary.failed_attempts == 0


def test_a_summary_reads_back_from_its_json() -> None:
    for summary in (summary_of(), summarise(failed(), FOLDER, policy("moi-bench"))):
        assert codec.decode(codec.encode(summary), Summary, where="here") == summary


def test_only_timed_images_count_for_the_latency() -> None:
    phases = enumerate(("cold", "warmup", "observer"), start=1)
    others = tuple(make_sample(phase=phase, process=process, duration_ns=10**12) for process, phase in phases)
    summary = summary_of(iterations=(*others, *make_samples()))
    assert summary.latency_ns is not None
    assert summary.latency_ns.samples == LATENCIES_NS


def test_one_timed_image_has_no_spread() -> None:
    latency = summary_of(iterations=make_samples((5_000_000,))).latency_ns
    assert latency is not None
    assert (latency.n, latency.median) == (1, 5_000_000)
    assert (latency.p25, latency.p75, latency.p90, latency.ci95) == (None, None, None, None)


def test_a_failed_run_has_no_numbers_and_the_tier_none() -> None:
    summary = summarise(failed(), FOLDER, policy("moi-bench"))
    assert summary.latency_ns is None
    assert summary.peak_memory_bytes is None
    assert summary.stages_ns == {}
    assert (summary.cold.n, summary.cold.load_ns, summary.cold.first_image_ns) == (0, None, None)
    assert summary.tier.tier == "none"
    assert (summary.stage, summary.component, summary.failed_attempts) == ("denoise", "denoiser", 1)


def test_a_required_metric_that_is_missing_makes_the_tier_unknown() -> None:
    summary = summary_of(processes=(make_process(memory=make_memory(peak_bytes=None)),))
    assert (summary.tier.tier, summary.tier.missing) == ("unknown", ("peak_memory",))


def test_the_peak_is_the_largest_of_all_processes() -> None:
    peaks = (100_000_000, 300_000_000, 200_000_000)
    processes = tuple(
        make_process(process=number, memory=make_memory(peak_bytes=peak)) for number, peak in enumerate(peaks)
    )
    assert summary_of(processes=processes).peak_memory_bytes == 300_000_000


def test_cold_numbers_are_medians_over_the_processes_that_made_an_image() -> None:
    firsts = (500, 900, 600, None)
    processes = tuple(
        make_process(process=number, load_ns_by_component={"a": 10 * number, "b": 1}, first_image_ns=first)
        for number, first in enumerate(firsts)
    )
    cold = summary_of(processes=processes).cold
    assert (cold.n, cold.first_image_ns, cold.load_ns) == (3, 600, 11)
    assert cold.first_image_ns_samples == (500, 900, 600)


@pytest.mark.parametrize(("caches", "told"), [(("dropped",) * 3, "dropped"), (("dropped", "warm"), "unknown")])
def test_processes_with_different_page_caches_have_an_unknown_one(caches: tuple[str, ...], told: str) -> None:
    processes = tuple(make_process(process=number, page_cache=cache) for number, cache in enumerate(caches))
    assert summary_of(processes=processes).cold.page_cache == told


def test_a_stage_that_comes_twice_in_an_image_counts_as_its_sum() -> None:
    stages = tuple(StageTime(stage=name, duration_ns=ns) for name, ns in (("load", 5), ("decode", 7), ("load", 20)))
    assert stage_medians([make_sample(stages=stages)]) == {"load": 25.0, "decode": 7.0}


def test_stages_are_medians_in_the_order_of_the_image() -> None:
    images = [
        make_sample(stages=(StageTime(stage="b", duration_ns=n), StageTime(stage="a", duration_ns=1)))
        for n in (3, 9, 4)
    ]
    assert list(stage_medians(images).items()) == [("b", 4.0), ("a", 1.0)]


def test_the_observer_effect_pairs_neighbours_whichever_is_first() -> None:
    times = ((True, 110), (False, 100), (False, 100), (True, 110))
    observer = tuple(
        make_sample(
            phase="observer",
            iteration=number,
            start_boot_ns=BOOT_NS + 60 * NS_PER_S + 200 * number,
            traced=traced,
            duration_ns=ns,
            stages=(),
        )
        for number, (traced, ns) in enumerate(times)
    )
    effect = summary_of(iterations=(*make_samples(), *observer)).observer_effect
    assert effect is not None
    assert effect.n == 2
    assert effect.ratio == pytest.approx(1.1)


def test_without_pairs_there_is_no_observer_effect() -> None:
    assert summary_of().observer_effect is None
    assert summary_of(iterations=(make_sample(phase="observer"),)).observer_effect is None


@pytest.mark.parametrize(
    ("measurement", "text"),
    [
        (job.Measurement(kind="burst"), "burst"),
        (job.Measurement(kind="spaced", gap_s=2.5), "spaced 2.5 s"),
        (job.Measurement(kind="sustained", minutes=10), "sustained 10 min"),
    ],
)
def test_the_protocol_is_named_with_its_parameter(measurement: job.Measurement, text: str) -> None:
    assert protocol_text(make_run(measurement=measurement)) == text


def test_graphics_memory_stands_apart_from_the_peak() -> None:
    told = [
        SystemMemory(pss_bytes=1, swap_pss_bytes=0, graphics_bytes=size, definition="meminfo") for size in (7, None)
    ]
    processes = tuple(make_process(process=number, system_memory=memory) for number, memory in enumerate(told))
    summary = summary_of(processes=processes)
    assert summary.graphics_memory_bytes == 7
    assert summary.peak_memory_bytes == summary_of().peak_memory_bytes
    assert summary_of().graphics_memory_bytes is None


def test_energy_is_that_of_one_image_by_the_first_meter() -> None:
    rails, battery = make_energy(), make_energy(source="battery_current", joules=240.0)
    summary = summary_of(energy=(rails, battery))
    assert (summary.energy_joules, summary.energy_reason) == (rails.joules / rails.images, None)
    assert summary.energy == (rails, battery)


def test_energy_is_missing_with_the_reason_that_the_run_gives() -> None:
    summary = summary_of(energy_reason="the device was on external power")
    assert (summary.energy_joules, summary.energy_reason) == (None, "the device was on external power")


def test_files_are_named_where_they_lie() -> None:
    (artifact,) = summary_of(images=(ImageFile(path="output-1.png", sha256=SHA_IMAGE, role="output"),)).artifacts
    assert artifact.path == str(FOLDER / "output-1.png")


def test_the_tier_follows_the_policy_that_is_asked() -> None:
    strict = policy("moi-bench")
    none = replace(
        strict,
        tiers=tuple(
            replace(rule, limits=tuple(replace(limit, value=1) for limit in rule.limits)) for rule in strict.tiers
        ),
    )
    run = make_run()
    assert summarise(run, FOLDER, strict).tier.tier == "D4"
    assert summarise(run, FOLDER, none).tier.tier != "D4"


def test_a_killed_process_takes_the_peak_with_it_and_leaves_a_lower_bound() -> None:
    killed = make_process(process=1, outcome="failed", memory=None, first_image_ns=None)
    summary = summary_of(outcome="failed", reason="runner_died: x", processes=(make_process(), killed))
    assert summary.peak_memory_bytes is None
    assert (summary.peak_memory_at_least_bytes, summary.memory_processes) == (160_000_000, 1)
    assert next(m.value for m in summary.tier.margins if m.metric == "peak_memory") is None


def test_a_broken_clock_withholds_all_that_it_timed() -> None:
    summary = summary_of(iterations=make_samples((400, 0, 400)))
    assert (summary.latency_ns, summary.stages_ns, summary.drift) == (None, {}, None)
    assert (summary.cold.load_ns, summary.cold.first_image_ns) == (None, None)
    assert summary.tier.tier == "unknown"
