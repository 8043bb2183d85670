"""A short journal and one of each message, told as a runner and a host would."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from profiler.quantities import NS_PER_MS
from profiler.records.event import (
    AnyEvent,
    Artifact,
    Begin,
    Canary,
    EnvironmentSample,
    Idle,
    IterationDone,
    LoadDone,
    MemorySample,
    Phase,
    Rest,
    Stop,
    Trace,
    Waiting,
)
from profiler.records.message import (
    PROTOCOL_VERSION,
    Accepted,
    Bye,
    Cancel,
    HostHello,
    Inspect,
    Inspection,
    Receipt,
    Refused,
    Replay,
    Reply,
    Request,
    RunnerHello,
    Start,
)
from tests.records_for_tests import (
    BOOT_NS,
    JOB_ID,
    NETWORK,
    SHA_BUNDLE,
    SHA_IMAGE,
    WALL_NS,
    make_job,
    make_memory,
    make_stages,
)

TOKEN = "0123456789abcdef0123456789abcdef"

Told = tuple[type[AnyEvent], dict[str, Any]]


def make_journal() -> tuple[AnyEvent, ...]:
    """Return a whole job: four loads, a cold image, a timed one, and a good end."""
    end = {"outcome": "completed", "reason": None, "stage": None, "component": None, "memory": make_memory()}
    return _numbered(
        _start_told()
        + _image_told("cold", 520_000_000)
        + [(Waiting, {"reason": "a pause of 2 s"})]
        + [(Rest, {"start_boot_ns": BOOT_NS + 300 * NS_PER_MS, "end_boot_ns": BOOT_NS + 320 * NS_PER_MS})]
        + _image_told("timed", 405_000_000)
        + [(Stop, end)]
    )


def make_failed_journal() -> tuple[AnyEvent, ...]:
    """Return a job whose model ran out of memory while it denoised the first image."""
    end = {
        "outcome": "failed",
        "reason": "out_of_memory: the runner could not allocate",
        "stage": "denoise",
        "component": "denoiser",
        "memory": make_memory(peak_bytes=2_000_000_000),
    }
    return _numbered([*_start_told(), *_image_told("cold", 520_000_000)[:2], (Stop, end)])


def _numbered(told: list[Told]) -> tuple[AnyEvent, ...]:
    return tuple(
        kind(
            seq=seq,
            job_id=JOB_ID,
            device_boot_ns=BOOT_NS + seq * 20 * NS_PER_MS,
            wall_ns=WALL_NS + seq * 20 * NS_PER_MS,
            **fields,
        )
        for seq, (kind, fields) in enumerate(told)
    )


def _start_told() -> list[Told]:
    told: list[Told] = [(Idle, {"memory": make_memory(resident_bytes=40_000_000, peak_bytes=40_000_000)})]
    told.append((Canary, {"when": "cool", "duration_ns": 200_000}))
    for component in NETWORK:
        told.append((Begin, {"phase": "load", "iteration": None, "stage": "load", "component": component}))
        told.append((LoadDone, {"component": component, "duration_ns": 15_000_000, "memory": make_memory()}))
    return told


def _image_told(phase: Phase, duration_ns: int) -> list[Told]:
    stages = {"encode_text": "text_encoder", "denoise": "denoiser", "decode": "decoder", "finish": None}
    begun: list[Told] = [
        (Begin, {"phase": phase, "iteration": 0, "stage": stage, "component": component})
        for stage, component in stages.items()
    ]
    iteration = {
        "phase": phase,
        "iteration": 0,
        "start_boot_ns": BOOT_NS,
        "duration_ns": duration_ns,
        "gap_ns": None if phase == "cold" else 3_000_000,
        "stages": make_stages(duration_ns),
        "image_sha256": SHA_IMAGE,
        "traced": True,
    }
    kept = {
        "path": f"{phase}-0.ppm",
        "sha256": SHA_IMAGE,
        "media": "image/x-portable-pixmap",
        "phase": phase,
        "iteration": 0,
    }
    artifact: list[Told] = [(Artifact, kept)] if phase == "cold" else []
    canary: Told = (Canary, {"when": "between", "duration_ns": 201_000})
    return [*begun, (IterationDone, iteration), *artifact, canary, (Trace, _samples())]


def make_environment(**fields: Any) -> EnvironmentSample:
    """Return a reading of a device that works a little and has no battery."""
    return replace(
        EnvironmentSample(
            device_boot_ns=BOOT_NS,
            temperature_millicelsius=36_500,
            battery_percent=None,
            external_power=None,
            cpu_frequency_khz=2_400_000,
            cpu_load_percent=55.5,
            own_cpu_percent=50.0,
            other_cpu_percent=5.5,
            cpu_frequency_limit_khz=2_800_000,
            throttle_count=0,
        ),
        **fields,
    )


def _samples() -> dict[str, Any]:
    return {
        "memory": tuple(
            MemorySample(device_boot_ns=BOOT_NS + step * 10 * NS_PER_MS, resident_bytes=150_000_000 + step * 4096)
            for step in range(3)
        ),
        "environment": (make_environment(),),
        "missing": {"battery_percent": "no battery", "external_power": "no battery"},
    }


def make_phone_environment(**fields: Any) -> EnvironmentSample:
    """Return what an Android app can read: a battery with its gauges, heat as the system tells it, and power rails."""
    return make_environment(
        battery_percent=64.0,
        external_power=False,
        throttle_count=None,
        battery_temperature_millicelsius=30_900,
        battery_current_raw=-812_500,
        battery_voltage_millivolts=3_912,
        battery_charge_counter_microamperehours=2_849_000,
        thermal_status=0,
        thermal_headroom=0.62,
        energy_microwattseconds_by_rail={"S2M_VDD_CPUCL2": 812_345_678, "VSYS_PWR_DISPLAY": 92_000_111},
        **fields,
    )


def make_phone_journal() -> tuple[AnyEvent, ...]:
    """Return the same job as a phone tells it."""
    return tuple(_as_on_a_phone(event) if isinstance(event, Trace) else event for event in make_journal())


def _as_on_a_phone(trace: Trace) -> Trace:
    memory = tuple(replace(sample, swapped_bytes=4096) for sample in trace.memory)
    return replace(trace, memory=memory, environment=(make_phone_environment(),), missing={"throttle_count": "no such"})


def make_requests() -> tuple[Request, ...]:
    """Return one of each request, in an order that makes sense."""
    return (
        HostHello(protocol_version=PROTOCOL_VERSION, host_version="0.1.0", token=TOKEN),
        Inspect(paths=("bundles/nano/bundle.json", "bundles/nano/decoder.onnx")),
        Start(job=make_job()),
        Replay(job_id=JOB_ID, from_seq=5),
        Cancel(),
        Bye(),
    )


def make_replies() -> tuple[Reply, ...]:
    """Return one of each reply, and each code of refusal that a host must tell apart."""
    return (
        RunnerHello(
            protocol_version=PROTOCOL_VERSION,
            runner_version="0.1.0",
            platform="python",
            engines={"onnxruntime": "1.23.0"},
            virtual=False,
            pid=4711,
        ),
        Inspection(
            receipts=(
                Receipt(path="bundles/nano/bundle.json", size_bytes=2881, sha256=SHA_BUNDLE),
                Receipt(path="bundles/nano/decoder.onnx", size_bytes=None, sha256=None),
            )
        ),
        Accepted(job_id=JOB_ID),
        Refused(code="token", reason="not the token of this session"),
        Refused(code="busy", reason="this runner serves one job in its life; start another process"),
        RunnerHello(
            protocol_version=PROTOCOL_VERSION,
            runner_version="0.1.0",
            platform="android",
            engines={"onnxruntime": "synthetic"},
            virtual=True,
            pid=4711,
            synthetic=True,
        ),
    )
