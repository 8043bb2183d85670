"""A whole bundle in milliseconds, without torch: trivial graphs, real files, and faults on request."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from msgspec.structs import replace
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from profiler import codec
from profiler.bundle_files import MANIFEST, describe, load_manifest, manifest_sha256
from profiler.inputs import JobInputs, Wishes, job_inputs, noise_for, plan_for, write_inputs
from profiler.records import bundle, plan
from profiler.records.job import Job, Measurement, OnDisconnect, Sampling
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import Licence
from profiler.session import Order

SIDE, LATENT, PROMPT_LENGTH, WIDTH = 16, 4, 8, 4
STEPS, MOST_STEPS = 4, 8
WORDS = ("[PAD]", "[UNK]", "a", "red", "blue", "circle", "square", "make", "it")
PROMPTS: dict[Task, str] = {"generate": "a red circle", "edit": "make it blue"}

Fault = Literal["nan_image", "failing_call", "broken_graph", "unknown_component"]
Node = Any
Graph = tuple[list[Node], dict[str, np.ndarray[Any, Any]]]

_LATENTS = plan.Port(name="latents", dtype="float32", shape=(1, 4, LATENT, LATENT))
_IDS = plan.Port(name="input_ids", dtype="int32", shape=(1, PROMPT_LENGTH))
_STATES = plan.Port(name="text_states", dtype="float32", shape=(1, PROMPT_LENGTH, WIDTH))
_IMAGE = plan.Port(name="image", dtype="float32", shape=(1, 3, SIDE, SIDE))
_SOURCE = replace(_IMAGE, name="source_image")
_SCALAR = plan.Port(name="step_size", dtype="float32", shape=(1,))
_PORTS: dict[tuple[str, str], tuple[tuple[plan.Port, ...], plan.Port]] = {
    ("text_encoder", "encode"): ((_IDS,), _STATES),
    ("denoiser", "predict"): (
        (_LATENTS, replace(_LATENTS, name="source_latents"), replace(_SCALAR, name="timestep"), _STATES),
        replace(_LATENTS, name="prediction"),
    ),
    ("guide_step", "start"): ((replace(_LATENTS, name="noise"), replace(_SCALAR, name="start_scale")), _LATENTS),
    ("guide_step", "guide"): (
        (_LATENTS, replace(_LATENTS, name="prediction"), _SCALAR),
        replace(_LATENTS, name="next_latents"),
    ),
    ("decoder", "decode"): ((_LATENTS,), _IMAGE),
    ("image_encoder", "encode"): ((_SOURCE,), replace(_LATENTS, name="source_latents")),
}
_PARAMETERS = {"text_encoder": 36, "denoiser": 1, "guide_step": 0, "decoder": 192, "image_encoder": 192}


def build_small_bundle(
    folder: Path,
    *,
    fault: Fault | None = None,
    slow: int = 0,
    hungry: int = 0,
    name: str = "small",
    sequential: bool = False,
) -> Path:
    """Write a bundle that generates and edits.

    `slow` adds so many large products to each denoiser call, `hungry` lets each allocate so many MiB.
    """
    folder.mkdir(parents=True)
    for (component, function), graph in _graphs(fault, slow, hungry).items():
        _save(folder / _path(component, function), graph, *_PORTS[component, function])
    if fault == "broken_graph":
        (folder / _path("decoder", "decode")).write_bytes(b"this is no graph")
    _tokenizer().save(str(folder / "tokenizer.json"))
    save_file({"blank_latents": np.zeros((1, 4, LATENT, LATENT), np.float32)}, folder / "constants.safetensors")
    for task in PROMPTS:
        _write_task(folder, task, fault, sequential)
    Image.fromarray(_picture()).save(folder / "source.png")
    (folder / MANIFEST).write_bytes(codec.encode_pretty(_manifest(folder, name, sequential)))
    return folder


def make_order(folder: Path, *, task: Task = "generate", wishes: Wishes | None = None, **fields: Any) -> Order:
    """Return an order for the least that is a measurement: one process, one timed image."""
    wishes = wishes or Wishes()
    manifest = load_manifest(folder)
    wanted = plan_for(folder, manifest, task, wishes.steps)
    inputs: JobInputs = job_inputs(folder, manifest, wanted, wishes)
    order = Order(
        bundle_folder=folder,
        bundle=manifest,
        bundle_sha256=manifest_sha256(folder),
        plan=wanted,
        inputs=inputs,
        measurement=Measurement(kind="burst"),
        cold_starts=1,
        warmups=0,
        repeats=1,
        observer_pairs=0,
        threads=1,
        sampling=Sampling(memory_interval_ms=5, environment_interval_ms=100),
    )
    return order._replace(**fields)


def _path(component: str, function: str) -> str:
    return f"components/{component}.{function}.onnx"


def _graphs(fault: Fault | None, slow: int, hungry: int) -> dict[tuple[str, str], Graph]:
    rows = 1 if fault == "failing_call" else len(WORDS)
    table = np.linspace(-1, 1, rows * WIDTH, dtype=np.float32).reshape(rows, WIDTH)
    decode = ["Neg", "Sqrt"] if fault == "nan_image" else ["Sigmoid"]
    return {
        ("text_encoder", "encode"): ([_node("Gather", ["table", "input_ids"], "text_states")], {"table": table}),
        ("denoiser", "predict"): _denoiser(slow, hungry),
        ("guide_step", "start"): ([_node("Mul", ["noise", "start_scale"], "latents")], {}),
        ("guide_step", "guide"): (
            [_node("Mul", ["prediction", "step_size"], "step"), _node("Add", ["latents", "step"], "next_latents")],
            {},
        ),
        ("decoder", "decode"): _decoder(decode),
        ("image_encoder", "encode"): (
            [_node("Conv", ["source_image", "kernel"], "source_latents", strides=[4, 4])],
            {"kernel": np.linspace(-1e-3, 2e-3, 192, dtype=np.float32).reshape(4, 3, 4, 4)},
        ),
    }


def _denoiser(slow: int, hungry: int) -> Graph:
    nodes = [
        _node("ReduceMean", ["text_states", "middle"], "pooled", keepdims=0),
        _node("Reshape", ["pooled", "per_channel"], "text"),
        _node("Mul", ["timestep", "small"], "time"),
        _node("Add", ["latents", "text"], "with_text"),
        _node("Add", ["with_text", "source_latents"], "with_source"),
        _node("Add", ["with_source", "time"], "quick"),
    ]
    weights = {
        "middle": np.array([1], np.int64),
        "per_channel": np.array([1, WIDTH, 1, 1], np.int64),
        "small": np.array([1e-4], np.float32),
    }
    if hungry:
        return _eat(nodes, weights, hungry)
    if not slow:
        return [*nodes, _node("Identity", ["quick"], "prediction")], weights
    weights |= {
        "column": np.array([64, 1], np.int64),
        "row": np.full((1, 1024), 0.01, np.float32),
        "square": np.full((1024, 1024), 1e-3, np.float32),
        "corner": np.array([0, 0], np.int64),
        "least": np.array([1e-6], np.float32),
    }
    nodes += [_node("Reshape", ["latents", "column"], "flat"), _node("MatMul", ["flat", "row"], "product_0")]
    for number in range(slow):
        nodes.append(_node("MatMul", [f"product_{number}", "square"], f"sum_{number}"))
        nodes.append(_node("Tanh", [f"sum_{number}"], f"product_{number + 1}"))
    nodes += [
        _node("GatherND", [f"product_{slow}", "corner"], "one"),
        _node("Mul", ["one", "least"], "bit"),
        _node("Add", ["quick", "bit"], "prediction"),
    ]
    return nodes, weights


def _eat(nodes: list[Node], weights: dict[str, np.ndarray[Any, Any]], mebibytes: int) -> Graph:
    more = [
        _node("Expand", ["timestep", "large"], "meal"),
        _node("ReduceMax", ["meal"], "taste", keepdims=0),
        _node("Mul", ["taste", "none"], "nothing"),
        _node("Add", ["quick", "nothing"], "prediction"),
    ]
    large = {"large": np.array([mebibytes << 18], np.int64), "none": np.array([0], np.float32)}
    return [*nodes, *more], weights | large


def _decoder(activations: list[str]) -> Graph:
    nodes = [_node("ConvTranspose", ["latents", "kernel"], "value_0", strides=[4, 4])]
    for number, kind in enumerate(activations):
        nodes.append(_node(kind, [f"value_{number}"], f"value_{number + 1}"))
    nodes.append(_node("Mul", [f"value_{len(activations)}", "white"], "image"))
    kernel = np.linspace(0.1, 1, 192, dtype=np.float32).reshape(4, 3, 4, 4)
    return nodes, {"kernel": kernel, "white": np.array([255], np.float32)}


def _node(kind: str, inputs: list[str], output: str, **attributes: Any) -> Node:
    return helper.make_node(kind, inputs, [output], **attributes)


def _save(path: Path, graph: Graph, inputs: tuple[plan.Port, ...], output: plan.Port) -> None:
    nodes, weights = graph
    path.parent.mkdir(exist_ok=True)
    made = helper.make_graph(
        nodes,
        path.stem,
        [_value(port) for port in inputs],
        [_value(output)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(made, ir_version=9, opset_imports=[helper.make_opsetid("", 20)]), path)


def _value(port: plan.Port) -> Any:
    kinds = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32}
    return helper.make_tensor_value_info(port.name, kinds[port.dtype], port.shape)


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=PROMPT_LENGTH, pad_id=0, pad_token="[PAD]")
    tokenizer.enable_truncation(PROMPT_LENGTH)
    return tokenizer


def _picture() -> np.ndarray[Any, Any]:
    picture = np.full((SIDE, SIDE, 3), 255, np.uint8)
    picture[4:12, 4:12] = (200, 30, 30)
    return picture


def _constants(steps: int) -> dict[str, plan.Constant]:
    times = tuple(1000.0 * (steps - step) / steps for step in range(steps))
    return {
        "start_scale": plan.Constant(dtype="float32", shape=(1,), values=(1.0,)),
        "timesteps": plan.Constant(dtype="float32", shape=(steps, 1), values=times),
        "step_sizes": plan.Constant(dtype="float32", shape=(steps, 1), values=(-0.5 / steps,) * steps),
    }


def _plan(task: Task, fault: Fault | None, sequential: bool) -> plan.Plan:
    body = _body(task)
    if fault == "unknown_component":
        body.insert(0, _call("upscaler", "run", {}, {}))
    names = list(dict.fromkeys(name for step in body for name in _names(step) if name in _PARAMETERS))
    sources = (_SOURCE,) if task == "edit" else ()
    return plan.Plan(
        task=task,
        scheduler="euler",
        steps=STEPS,
        guidance=plan.Guidance(text=1.0),
        inputs=(replace(_IDS, name="prompt_ids"), replace(_LATENTS, name="noise"), *sources),
        constants=_constants(STEPS),
        constants_file="constants.safetensors",
        prepare=() if sequential else tuple(plan.Load(component=name) for name in names),
        body=tuple(_around(body) if sequential else body),
    )


def _around(body: list[plan.PlanStep]) -> list[plan.PlanStep]:
    """Load each component right before its step; only `guide_step` is used by two."""
    steps: list[plan.PlanStep] = [plan.Load(component="guide_step")]
    for step in body:
        names = [name for name in _names(step) if name != "guide_step"]
        steps += [plan.Load(component=name) for name in names]
        steps.append(step)
        steps += [plan.Unload(component=name) for name in names]
    return steps


def _names(step: plan.PlanStep) -> list[str]:
    calls = step.body if isinstance(step, plan.Loop) else (step,)
    return [call.component for call in calls if isinstance(call, plan.Call)]


def _body(task: Task) -> list[plan.PlanStep]:
    source = "source_latents" if task == "edit" else "blank_latents"
    encode = _call("image_encoder", "encode", {"source_image": "source_image"}, {"source_latents": "source_latents"})
    return [
        _call("text_encoder", "encode", {"input_ids": "prompt_ids"}, {"text_states": "text_states"}),
        *([encode] if task == "edit" else []),
        _call(
            "guide_step", "start", {"noise": "noise", "start_scale": "start_scale"}, {"latents": "first"}, "denoiser"
        ),
        _loop(source),
        _call("decoder", "decode", {"latents": "latents"}, {"image": "image"}),
        plan.Output(value="image", stage="decoder"),
    ]


def _loop(source: str) -> plan.Loop:
    predict = {"latents": "latents", "source_latents": source, "timestep": "timestep", "text_states": "text_states"}
    guide = {"latents": "latents", "prediction": "prediction", "step_size": "step_size"}
    return plan.Loop(
        over={"timestep": "timesteps", "step_size": "step_sizes"},
        carry={"latents": "first"},
        body=(
            _call("denoiser", "predict", predict, {"prediction": "prediction"}),
            _call("guide_step", "guide", guide, {"next_latents": "latents"}, "denoiser"),
        ),
        stage="denoiser",
    )


def _call(
    component: str, function: str, bind: dict[str, str], emit: dict[str, str], stage: str | None = None
) -> plan.Call:
    return plan.Call(component=component, function=function, bind=bind, emit=emit, stage=stage or component)


def _write_task(folder: Path, task: Task, fault: Fault | None, sequential: bool) -> None:
    wanted = _plan(task, fault, sequential)
    schedules = plan.Schedules(
        scheduler="euler", constants_by_steps={steps: _constants(steps) for steps in range(1, MOST_STEPS + 1)}
    )
    (folder / f"{task}.json").write_bytes(codec.encode(wanted))
    (folder / f"{task}.schedules.json").write_bytes(codec.encode(schedules))
    ids = np.array([_tokenizer().encode(PROMPTS[task]).ids], np.int32)
    tensors = {"prompt_ids": ids, **noise_for(wanted, 0)}
    if task == "edit":
        tensors["source_image"] = np.ascontiguousarray(_picture().transpose(2, 0, 1)[None], np.float32)
    save_file(tensors, folder / f"{task}.safetensors")


def _manifest(folder: Path, name: str, sequential: bool) -> bundle.Bundle:
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    exact = bundle.Difference(max_absolute=0.0, relative=0.0)
    image = bundle.ImageDifference(float_image=exact, uint8_max_levels=0, uint8_changed_share=0.0)
    return bundle.Bundle(
        model=name,
        source=bundle.Source(
            repo="tests", revision=None, weights_sha256=hashlib.sha256(b"a table and two kernels").hexdigest()
        ),
        licence=Licence(name="Apache-2.0", commercial_use="allowed"),
        recipe=Recipe(height=SIDE, width=SIDE, load_policy="sequential" if sequential else "resident"),
        components={component: _component(component) for component in _PARAMETERS},
        tasks={task: _task(task) for task in PROMPTS},
        prompt_encoding=bundle.PromptEncoding(tokenizer="tokenizer.json", length=PROMPT_LENGTH),
        verification=bundle.Verification(
            reference="none", components=dict.fromkeys(_PARAMETERS, exact), images=dict.fromkeys(PROMPTS, image)
        ),
        files=tuple(describe(folder, path) for path in paths),
        tools={"onnx": onnx.__version__},
    )


def _component(component: str) -> bundle.Component:
    functions = {
        function: bundle.Function(path=_path(name, function), inputs=inputs, outputs=(output,))
        for (name, function), (inputs, output) in _PORTS.items()
        if name == component
    }
    return bundle.Component(
        functions=functions,
        files=tuple(function.path for function in functions.values()),
        parameters=_PARAMETERS[component],
        precision="fp32",
    )


def _task(task: Task) -> bundle.TaskPlan:
    source = "source.png" if task == "edit" else None
    defaults = bundle.DefaultInputs(
        path=f"{task}.safetensors", prompt=PROMPTS[task], negative_prompt="", seed=0, source_image=source
    )
    return bundle.TaskPlan(plan=f"{task}.json", schedules=f"{task}.schedules.json", defaults=defaults)


def make_small_job(folder: Path, storage: Path, *, task: Task = "generate", **fields: Any) -> Job:
    """Return a job of one image on a small bundle, and put its inputs into a runner's storage."""
    order = make_order(folder, task=task)
    job = Job(
        job_id="job",
        bundle=str(folder),
        bundle_sha256=order.bundle_sha256,
        plan=order.plan,
        inputs=write_inputs(order.inputs, storage / "inputs.safetensors"),
        engine="onnxruntime",
        threads=1,
        warmups=0,
        repeats=0,
        observer_pairs=0,
        measurement=order.measurement,
        sampling=order.sampling,
        on_disconnect=OnDisconnect(kind="stop_after_s", seconds=30.0),
    )
    return replace(job, **fields)
