"""Small, true-to-life records; a test overrides the fields it is about and takes the rest as given."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from profiler.records import bundle, job, plan, recipe, spec
from profiler.records.event import MemoryReading, StageTime
from profiler.records.record import DType, Task

SIDE = 64
STEPS = 2
WALL_NS = 1_750_000_000_000_000_000
BOOT_NS = 5_000_000_000_000
RUN_ID = "20250615-150640-000-5eed"
JOB_ID = f"{RUN_ID}-0"
SHA_BUNDLE, SHA_IMAGE, SHA_INPUTS, SHA_WEIGHTS = ("b" * 64, "1" * 64, "2" * 64, "3" * 64)
LATENCIES_NS = (412_000_000, 405_000_000, 401_000_000, 409_000_000, 403_000_000, 407_000_000)


def port(name: str, *shape: int, dtype: DType = "float32") -> plan.Port:
    """Return a tensor at a graph's boundary."""
    return plan.Port(name=name, dtype=dtype, shape=shape)


_LATENT = (1, 4, SIDE // 8, SIDE // 8)
_TOKENS = port("tokens", 1, 16, dtype="int32")
_EMBEDDING = port("embedding", 1, 16, 64)
_LATENTS = port("latents", *_LATENT)
_PREDICTION = port("prediction", *_LATENT)
_IMAGE = port("image", 1, 3, SIDE, SIDE)
# component: (parameters, inputs, output)
NETWORK = {
    "text_encoder": (20_480, (_TOKENS,), _EMBEDDING),
    "denoiser": (81_920, (_LATENTS, port("timestep", 1), _EMBEDDING), _PREDICTION),
    "guide_step": (0, (_LATENTS, _PREDICTION, port("step_size", 1)), port("next_latents", *_LATENT)),
    "decoder": (10_240, (_LATENTS,), _IMAGE),
}


def make_licence(**fields: Any) -> spec.Licence:
    """Return a free licence."""
    return replace(spec.Licence(name="Apache-2.0", commercial_use="allowed"), **fields)


def make_model_spec(**fields: Any) -> spec.ModelSpec:
    """Return a registry entry that generates only."""
    return replace(
        spec.ModelSpec(
            name="nano",
            title="Nano, a toy diffusion model",
            family="stable_diffusion",
            repo="nano",
            embedded=True,
            licence=make_licence(),
            height=SIDE,
            width=SIDE,
            tasks={"generate": spec.TaskDefaults(prompt="a red circle", steps=STEPS, text_guidance=1.0)},
        ),
        **fields,
    )


def make_recipe(**fields: Any) -> recipe.Recipe:
    """Return the fp32 ONNX recipe."""
    return replace(recipe.Recipe(height=SIDE, width=SIDE), **fields)


def make_plan(**fields: Any) -> plan.Plan:
    """Return a text-to-image plan of two steps."""
    return replace(
        plan.Plan(
            task="generate",
            scheduler="flow_match_euler",
            steps=STEPS,
            guidance=plan.Guidance(text=1.0),
            inputs=(_TOKENS, port("noise", *_LATENT)),
            constants=make_constants(STEPS),
            prepare=tuple(plan.Load(component=name) for name in NETWORK),
            body=(
                call("text_encoder", {"tokens": "tokens"}, {"embedding": "embedding"}, stage="encode_text"),
                _denoise_loop(),
                call("decoder", {"latents": "latents"}, {"image": "image"}, stage="decode"),
                plan.Output(value="image", stage="finish"),
            ),
        ),
        **fields,
    )


def _denoise_loop() -> plan.Loop:
    denoise = {"latents": "latents", "timestep": "timestep", "embedding": "embedding"}
    step = {"latents": "latents", "prediction": "prediction", "step_size": "step_size"}
    return plan.Loop(
        over={"timestep": "timesteps", "step_size": "step_sizes"},
        carry={"latents": "noise"},
        body=(
            call("denoiser", denoise, {"prediction": "prediction"}, stage="denoise"),
            call("guide_step", step, {"next_latents": "latents"}, stage="denoise"),
            plan.Free(values=("prediction",)),
        ),
        stage="denoise",
    )


def call(component: str, bind: dict[str, str], emit: dict[str, str], *, stage: str) -> plan.Call:
    """Return a call of a component's only function."""
    return plan.Call(component=component, function="main", bind=bind, emit=emit, stage=stage)


def make_constants(steps: int) -> dict[str, plan.Constant]:
    """Return the tensors that a plan of so many even steps loops over."""
    times = tuple(1000.0 * (steps - step) / steps for step in range(steps))
    return {
        "timesteps": plan.Constant(dtype="float32", shape=(steps, 1), values=times),
        "step_sizes": plan.Constant(dtype="float32", shape=(steps, 1), values=(-1.0 / steps,) * steps),
    }


def make_schedules(**fields: Any) -> plan.Schedules:
    """Return the constants for 1, 2 and 4 steps."""
    by_steps = {steps: make_constants(steps) for steps in (1, 2, 4)}
    return replace(plan.Schedules(scheduler="flow_match_euler", constants_by_steps=by_steps), **fields)


def make_source(**fields: Any) -> bundle.Source:
    """Return trained weights of a known hash."""
    return replace(bundle.Source(repo="nano", revision=None, weights_sha256=SHA_WEIGHTS), **fields)


def make_bundle(**fields: Any) -> bundle.Bundle:
    """Return a manifest of four fp32 components and one task; its files exist nowhere."""
    task: Task = "generate"
    difference = bundle.Difference(max_absolute=2e-6, relative=4e-7)
    image = bundle.ImageDifference(float_image=difference, uint8_max_levels=0, uint8_changed_share=0.0)
    return replace(
        bundle.Bundle(
            model="nano",
            source=make_source(),
            licence=make_licence(),
            recipe=make_recipe(),
            components={name: _component(name) for name in NETWORK},
            tasks={task: make_task_plan(task)},
            prompt_encoding=bundle.PromptEncoding(tokenizer="tokenizer.json", length=16),
            verification=bundle.Verification(
                reference="the source pipeline in fp32",
                components=dict.fromkeys(NETWORK, difference),
                images={task: image},
            ),
            files=tuple(
                bundle.BundleFile(path=f"{name}.onnx", size_bytes=4 * count + 1024, sha256=SHA_WEIGHTS)
                for name, (count, _, _) in NETWORK.items()
            ),
            tools={"exporter": "0.1.0", "torch": "2.13.0"},
        ),
        **fields,
    )


def make_task_plan(task: Task) -> bundle.TaskPlan:
    """Return where a task's files lie."""
    inputs = bundle.DefaultInputs(path=f"{task}.inputs.safetensors", prompt="a red circle", negative_prompt="", seed=0)
    return bundle.TaskPlan(plan=f"{task}.plan.json", schedules=f"{task}.schedules.json", defaults=inputs)


def _component(name: str) -> bundle.Component:
    parameters, inputs, output = NETWORK[name]
    function = bundle.Function(path=f"{name}.onnx", inputs=inputs, outputs=(output,))
    return bundle.Component(
        functions={"main": function}, files=(f"{name}.onnx",), parameters=parameters, precision="fp32"
    )


def make_job(**fields: Any) -> job.Job:
    """Return a burst of six timed images."""
    return replace(
        job.Job(
            job_id=JOB_ID,
            bundle="bundles/nano",
            bundle_sha256=SHA_BUNDLE,
            plan=make_plan(),
            inputs=job.InputFile(path="inputs.safetensors", sha256=SHA_INPUTS),
            engine="onnxruntime",
            threads=2,
            warmups=1,
            repeats=len(LATENCIES_NS),
            observer_pairs=0,
            measurement=job.Measurement(kind="burst"),
            sampling=job.Sampling(),
            on_disconnect=job.OnDisconnect(kind="stop_after_s", seconds=30.0),
        ),
        **fields,
    )


def make_memory(**fields: Any) -> MemoryReading:
    """Return what a Linux runner reads of itself."""
    return replace(
        MemoryReading(
            resident_bytes=150_000_000,
            peak_bytes=160_000_000,
            anonymous_bytes=100_000_000,
            file_backed_bytes=50_000_000,
            swapped_bytes=0,
            definition="VmHWM of /proc/self/status",
        ),
        **fields,
    )


def make_stages(duration_ns: int) -> tuple[StageTime, ...]:
    """Split a duration over the plan's stages."""
    tenth = duration_ns // 10
    return (
        StageTime(stage="encode_text", duration_ns=tenth),
        StageTime(stage="denoise", duration_ns=6 * tenth, rounds_ns=(3 * tenth, 3 * tenth)),
        StageTime(stage="decode", duration_ns=2 * tenth),
        StageTime(stage="finish", duration_ns=duration_ns - 9 * tenth),
    )
