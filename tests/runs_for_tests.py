"""A whole run, the machine it was made on and its parts; a test overrides what it is about."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from profiler.quantities import GIB, NS_PER_S
from profiler.records import device, job, plan, run
from tests.records_for_tests import (
    BOOT_NS,
    LATENCIES_NS,
    NETWORK,
    RUN_ID,
    SHA_BUNDLE,
    SHA_IMAGE,
    SHA_INPUTS,
    SIDE,
    STEPS,
    WALL_NS,
    make_licence,
    make_memory,
    make_recipe,
    make_source,
    make_stages,
)


def make_unit(**fields: Any) -> device.Unit:
    """Return a small computer."""
    return replace(
        device.Unit(
            profile="local",
            platform="host",
            is_phone=False,
            virtual=False,
            model="Test Machine",
            processor="Test CPU",
            logical_cores=8,
            memory_bytes=8 * GIB,
            operating_system="Linux",
            os_build="6.1.0",
        ),
        **fields,
    )


def make_conditions(**fields: Any) -> device.Conditions:
    """Return a cool, idle start without battery."""
    return replace(
        device.Conditions(
            power=device.Power(battery_percent=None, external_power=None, reason="no battery"),
            temperature_millicelsius=35_000,
            temperature_reason=None,
            available_memory_bytes=6 * GIB,
            free_storage_bytes=64 * GIB,
            load_average_1m=0.25,
            cpu_governor="performance",
        ),
        **fields,
    )


def make_settings(**fields: Any) -> run.Settings:
    """Return the settings of `make_job`."""
    return replace(
        run.Settings(
            prompt="a red circle",
            negative_prompt="",
            seed=0,
            steps=STEPS,
            guidance=plan.Guidance(text=1.0),
            scheduler="flow_match_euler",
            height=SIDE,
            width=SIDE,
            source_image=None,
            inputs_sha256=SHA_INPUTS,
            threads=2,
            warmups=1,
            repeats=len(LATENCIES_NS),
            cold_starts=1,
        ),
        **fields,
    )


def make_bundle_use(**fields: Any) -> run.BundleUse:
    """Return what `make_bundle` weighs."""
    sizes = {name: 4 * count + 1024 for name, (count, _, _) in NETWORK.items()}
    return replace(
        run.BundleUse(
            sha256=SHA_BUNDLE,
            size_bytes=sum(sizes.values()),
            total_size_bytes=sum(sizes.values()),
            size_by_component=sizes,
            parameters_by_component={name: count for name, (count, _, _) in NETWORK.items()},
            source=make_source(),
        ),
        **fields,
    )


def make_energy(**fields: Any) -> run.Energy:
    """Return 20 images by the power rails of a phone."""
    energy = run.Energy(
        source="power_rails",
        joules=120.0,
        images=20,
        window_s=60.0,
        readings=60,
        rest_watts=0.8,
        evidence="2 rails: CPU, DISPLAY",
    )
    return replace(energy, **fields)


def make_process(**fields: Any) -> run.ProcessRecord:
    """Return a process that loaded everything and ended well."""
    return replace(
        run.ProcessRecord(
            process=0,
            journal="0.events.jsonl",
            outcome="completed",
            reason=None,
            stage=None,
            component=None,
            launch_ns=300_000_000,
            page_cache="warm",
            compile="first",
            load_ns_by_component=dict.fromkeys(NETWORK, 20_000_000),
            first_image_ns=520_000_000,
            idle_memory=make_memory(resident_bytes=40_000_000, peak_bytes=40_000_000),
            memory=make_memory(),
            last_seq=42,
        ),
        **fields,
    )


def make_sample(*, duration_ns: int = LATENCIES_NS[0], **fields: Any) -> run.IterationSample:
    """Return one timed image."""
    return replace(
        run.IterationSample(
            phase="timed",
            process=0,
            iteration=0,
            start_boot_ns=BOOT_NS,
            duration_ns=duration_ns,
            gap_ns=0,
            stages=make_stages(duration_ns),
            image_sha256=SHA_IMAGE,
            traced=True,
        ),
        **fields,
    )


def make_samples(latencies_ns: tuple[int, ...] = LATENCIES_NS, **fields: Any) -> tuple[run.IterationSample, ...]:
    """Return timed images of these latencies, back to back."""
    starts = [BOOT_NS + sum(latencies_ns[:number]) for number in range(len(latencies_ns))]
    return tuple(
        make_sample(iteration=number, start_boot_ns=start_ns, duration_ns=latency_ns, **fields)
        for number, (start_ns, latency_ns) in enumerate(zip(starts, latencies_ns, strict=True))
    )


def make_run(**fields: Any) -> run.Run:
    """Return a completed run of six timed images on one process."""
    return replace(
        run.Run(
            run_id=RUN_ID,
            started_wall_ns=WALL_NS,
            ended_wall_ns=WALL_NS + 10 * NS_PER_S,
            host_version="0.1.0",
            runner_version="0.1.0",
            engine="onnxruntime 1.23.0",
            outcome="completed",
            reason=None,
            stage=None,
            component=None,
            model="nano",
            task="generate",
            unit=make_unit(),
            conditions=make_conditions(),
            measurement=job.Measurement(kind="burst"),
            sampling=job.Sampling(),
            settings=make_settings(),
            recipe=make_recipe(),
            bundle=make_bundle_use(),
            licence=make_licence(),
            processes=(make_process(),),
            iterations=make_samples(),
            images=(run.ImageFile(path="images/0.ppm", sha256=SHA_IMAGE, role="output"),),
            max_temperature_millicelsius=41_000,
            temperature_reason=None,
            doubts=(),
        ),
        **fields,
    )
