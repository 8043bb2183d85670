"""Parts to Core ML packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("coremltools")

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize import nf4
from exporters.quantize.held import Held, HeldInt8, HeldNf4
from exporters.quantize.schemes import Applied, Scheme, apply
from exporters.runtimes import check_expresses, coreml, runtime
from exporters.runtimes.coreml import export_part
from exporters.verify import difference
from exporters.verify_coreml import MilInterpreter, Program, read_program, read_specification
from profiler.errors import InputError, InternalError, MissingExtra, ModelError
from profiler.records.bundle import Component
from profiler.records.recipe import EncoderScheme, Precision
from profiler.runner.engines.coreml_package import open_package
from tests.exporters.runtimes.test_onnx import Branches, Doubles, part_of, two_layers
from tests.exporters.small_pipelines import small_recipe

ROOT = Path(__file__).parents[3]
WIDTH, WORDS, LENGTH = 128, 64, 8
EXPORT_TO = """
import sys
from pathlib import Path
from tests.exporters.runtimes.test_coreml import export_two_layers
export_two_layers(Path(sys.argv[1]))
"""


class Encoder(nn.Module):
    """What a text encoder has: an embedding, layers, a norm."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.first, self.norm, self.second = nn.Linear(WIDTH, 64), nn.LayerNorm(64), nn.Linear(64, WIDTH)

    def forward(self, input_ids: Tensor) -> Tensor:
        hidden = self.norm(self.first(self.words(input_ids)))
        states: Tensor = self.second(nn.functional.silu(hidden))
        return states


class Timed(nn.Module):
    """What a U-Net makes of its timestep."""

    def forward(self, timestep: Tensor) -> Tensor:
        angles = timestep[:, None] * torch.linspace(1, 0.9, 64)[None]
        return torch.sin(angles) * 2


class Unknown(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return torch.erfinv(values)


class Written(NamedTuple):
    """An encoder whose weights are coded, as it was exported."""

    part: Part
    applied: Applied
    component: Component
    folder: Path


def export_two_layers(folder: Path) -> Component:
    return export_part(two_layers(), folder, small_recipe(runtime="coreml", precision="fp16"), Stages())


def encoder_part() -> Part:
    ids = torch.arange(LENGTH, dtype=torch.int32)[None]
    graph = Graph(module=Encoder().eval(), inputs={"input_ids": ids}, outputs=("text_states",))
    return Part(name="text_encoder", graphs={"encode": graph}, encodes_text=True)


def write(scheme: EncoderScheme, precision: Precision, folder: Path) -> Written:
    part = encoder_part()
    absmax = torch.float16 if precision == "fp16" else torch.float32
    applied = apply(part.modules, Scheme(name=scheme, rest=precision, absmax_dtype=absmax))
    recipe = small_recipe(runtime="coreml", precision=precision, text_encoder=scheme, compute_unit="cpu_gpu")
    return Written(part, applied, export_part(part, folder, recipe, Stages()), folder)


def program_of(written: Written) -> Program:
    return read_program(open_package(written.folder / written.component.functions["encode"].path))


def error_of(component: Component, part: Part, folder: Path) -> float:
    (calls,) = MilInterpreter().load(part.name, component, folder).values()
    (graph,) = part.graphs.values()
    (found,) = calls({name: value.numpy() for name, value in graph.inputs.items()})
    return difference(found, graph.run()[0].numpy()).relative


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Component, Path]:
    folder = tmp_path_factory.mktemp("halves")
    return export_two_layers(folder), folder


def test_the_manifest_describes_the_package(halves: tuple[Component, Path]) -> None:
    component, folder = halves
    function = component.functions["forward"]
    assert function.path == "components/two_layers/forward.mlpackage"
    assert [(port.name, port.dtype, port.shape) for port in function.inputs] == [("values", "float32", (1, 8))]
    assert [(port.name, port.dtype, port.shape) for port in function.outputs] == [("found", "float32", (1, 4))]
    assert {folder / path for path in component.files} == {path for path in folder.rglob("*") if path.is_file()}
    assert (component.precision, component.notes) == ("fp16", ())


def test_a_program_of_fp16_is_as_exact_as_its_rounding(halves: tuple[Component, Path]) -> None:
    component, folder = halves
    assert 1e-5 < error_of(component, two_layers(), folder) < 2e-3


def test_no_trace_of_this_machine_or_day_is_left(halves: tuple[Component, Path]) -> None:
    component, folder = halves
    package = open_package(folder / component.functions["forward"].path)
    facts = read_specification(package).description.metadata.userDefined
    assert facts["com.github.apple.coremltools.conversion_date"] == ""
    for path in component.files:
        data = (folder / path).read_bytes()
        for trace in (str(ROOT).encode(), b"site-packages", b".py", os.fsencode(folder)):
            assert trace not in data, (path, trace)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(halves: tuple[Component, Path], tmp_path: Path) -> None:
    component, folder = halves
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", EXPORT_TO, str(tmp_path)], env=environment, cwd=tmp_path, check=True)
    for path in component.files:
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes(), path


def test_coremltools_itself_reads_what_was_written(halves: tuple[Component, Path]) -> None:
    component, folder = halves
    path = folder / component.functions["forward"].path
    with coreml.quiet():
        model = coreml.coremltools.models.MLModel(str(path), skip_model_load=True)
    assert Path(model.weights_dir).resolve() == open_package(path).weights


def test_arithmetic_without_weights_is_never_rounded(tmp_path: Path) -> None:
    graph = Graph(module=Timed(), inputs={"timestep": torch.tensor([999.0])}, outputs=("sines",))
    part = Part(name="guide_step", graphs={"forward": graph})
    component = export_part(part, tmp_path, small_recipe(runtime="coreml", precision="fp16"), Stages())
    assert component.precision == "fp32"
    assert error_of(component, part, tmp_path) < 1e-6


def test_an_angle_is_not_rounded_in_a_program_of_fp16(tmp_path: Path) -> None:
    module = nn.Sequential(Timed(), nn.Linear(64, 64))
    graph = Graph(module=module.eval(), inputs={"input": torch.tensor([999.0])}, outputs=("sines",))
    part = Part(name="denoiser", graphs={"forward": graph})
    component = export_part(part, tmp_path, small_recipe(runtime="coreml", precision="fp16"), Stages())
    assert error_of(component, part, tmp_path) < 2e-3


@pytest.mark.parametrize("approximate", ["tanh", "none"])
def test_both_kinds_of_gelu_stay_what_they_are(approximate: str, tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(8, 64), nn.GELU(approximate=approximate))
    graph = Graph(module=module.eval(), inputs={"input": torch.linspace(-4, 4, 8)[None]}, outputs=("found",))
    part = Part(name="decoder", graphs={"forward": graph})
    component = export_part(part, tmp_path, small_recipe(runtime="coreml"), Stages())
    assert error_of(component, part, tmp_path) < 1e-6


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[EncoderScheme, Precision], Written]:
    """Return encoders by scheme and precision, each exported once."""
    made: dict[tuple[str, str], Written] = {}

    def get(scheme: EncoderScheme, precision: Precision) -> Written:
        key = (scheme, precision)
        if key not in made:
            made[key] = write(scheme, precision, tmp_path_factory.mktemp(f"{scheme}_{precision}"))
        return made[key]

    return get


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("scheme", ["nf4", "int8", "fp16"])
def test_a_coded_encoder_computes_what_pytorch_does_with_the_same_weights(
    coded: Callable[[EncoderScheme, Precision], Written], scheme: EncoderScheme, precision: Precision
) -> None:
    written = coded(scheme, precision)
    assert written.component.precision == scheme
    assert error_of(written.component, written.part, written.folder) < (1e-6 if precision == "fp32" else 3e-3)


def codes_in(program: Program, kind: str, port: str) -> list[np.ndarray[Any, Any]]:
    coded = program.constants.coded.values()
    return [program.constants[each.bind[port]].numpy() for each in coded if each.kind == kind]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_nf4_codes_and_scales_come_back_from_the_package_as_they_were(
    coded: Callable[[EncoderScheme, Precision], Written], precision: Precision
) -> None:
    written = coded("nf4", precision)
    program = program_of(written)
    held = list(written.applied.coded.values())
    assert len(held) == 3  # the embedding too
    indices = {codes.tobytes() for codes in codes_in(program, "constexpr_lut_to_dense", "indices")}
    scales = {codes.tobytes() for codes in codes_in(program, "constexpr_blockwise_shift_scale", "scale")}
    for each in held:
        assert isinstance(each, HeldNf4)
        packed = each.codes.numpy()
        assert np.stack([packed >> 4, packed & 15], axis=-1).tobytes() in indices
        assert each.absmax.numpy().tobytes() in scales
    (book,) = {codes.tobytes() for codes in codes_in(program, "constexpr_lut_to_dense", "lut")}
    assert book == np.array(nf4.CODE_BOOK, np.float16 if precision == "fp16" else np.float32).tobytes()


def test_int8_codes_come_back_from_the_package_as_they_were(
    coded: Callable[[EncoderScheme, Precision], Written],
) -> None:
    written = coded("int8", "fp16")
    held: list[Held] = list(written.applied.coded.values())
    data = {codes.tobytes() for codes in codes_in(program_of(written), "constexpr_blockwise_shift_scale", "data")}
    assert len(held) == 3
    for each in held:
        assert isinstance(each, HeldInt8)
        assert each.codes.numpy().tobytes() in data


def test_no_weight_is_there_a_second_time_in_more_bits(coded: Callable[[EncoderScheme, Precision], Written]) -> None:
    for scheme in ("nf4", "int8"):
        constants = program_of(coded(scheme, "fp16")).constants
        stored = (constants[name] for name in constants if name not in constants.coded)
        wide = [value for value in stored if isinstance(value, Tensor) and value.is_floating_point()]
        assert max(value.numel() for value in wide) <= WORDS * WIDTH // nf4.BLOCK


def test_nf4_carries_a_note_on_where_it_runs(coded: Callable[[EncoderScheme, Precision], Written]) -> None:
    (note,) = coded("nf4", "fp16").component.notes
    assert "Experimental" in note
    assert "2688" in note
    assert coded("int8", "fp16").component.notes == ()


def test_a_component_beyond_the_neural_engine_says_so() -> None:
    (note,) = coreml.notes("fp16", [[1_720_000_000]])
    assert note == "1.72 GB in one piece: for the CPU and GPU only, as the Neural Engine takes up to 1 GB a model."
    assert list(coreml.notes("fp16", [[895_000_000]])) == []


def test_a_component_that_was_split_for_it_says_so() -> None:
    (note,) = coreml.notes("fp16", [[895_000_000], [860_000_000, 870_000_000]])
    assert note == (
        "In 2 packages of up to 0.87 GB that run one after the other: the Neural Engine takes up to 1 GB a model."
    )


def test_a_boundary_of_another_type_is_an_internal_error(tmp_path: Path) -> None:
    graph = Graph(module=nn.Identity(), inputs={"values": torch.ones(1, 8).double()}, outputs=("found",))
    part = Part(name="odd", graphs={"forward": graph})
    with pytest.raises(InternalError, match=r"values is torch\.float64"):
        export_part(part, tmp_path, small_recipe(runtime="coreml"), Stages())


@pytest.mark.parametrize("module", [Branches(), Unknown()])
def test_what_cannot_be_converted_is_the_models_fault(module: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot convert odd\.forward to Core ML"):
        export_part(part_of(module), tmp_path, small_recipe(runtime="coreml"), Stages())


def test_doubles_inside_end_as_float32(tmp_path: Path) -> None:
    component = export_part(part_of(Doubles()), tmp_path, small_recipe(runtime="coreml"), Stages())
    assert component.functions["forward"].outputs[0].dtype == "float32"


def test_without_coremltools_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coremltools", None)  # what an import of a package that is not there finds
    monkeypatch.delitem(sys.modules, "exporters.runtimes.coreml")
    with pytest.raises(MissingExtra, match=r"exporting to Core ML needs .*\n.*\[export\].*make install-export"):
        runtime("coreml")


def test_nf4_for_the_neural_engine_is_refused_before_anything_is_loaded() -> None:
    recipe = small_recipe(runtime="coreml", text_encoder="nf4", compute_unit="all")
    with pytest.raises(InputError, match="does not load on the Neural Engine"):
        check_expresses(recipe, runtime("coreml"))
