"""Coded weights in Core ML packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("coremltools")

from coremltools.converters.mil.frontend.milproto import load as milproto

from exporters.mil_ops import Unsupported
from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize.held import HeldInt8, HeldNf4
from exporters.quantize.schemes import Applied, Scheme, apply
from exporters.runtimes import coreml
from exporters.runtimes.coreml_coded import CodedWeights
from exporters.verify_coreml import read_program, read_specification
from profiler.records.bundle import Component
from profiler.records.recipe import EncoderScheme
from profiler.runner.engines.coreml_package import open_package
from tests.exporters.small_pipelines import small_recipe

WIDTH, WORDS = 128, 64


class Tied(nn.Module):
    """An embedding that is the last layer too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.layer, self.head = (
            nn.Embedding(WORDS, WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, WORDS, bias=False),
        )
        self.head.weight = self.words.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(self.words(input_ids)))
        return logits


def coded_part(scheme: EncoderScheme) -> tuple[Part, Applied]:
    graph = Graph(module=Tied().eval(), inputs={"input_ids": torch.tensor([[5, 63, 5]]).int()}, outputs=("logits",))
    part = Part(name="text_encoder", graphs={"encode": graph}, encodes_text=True)
    return part, apply(part.modules, Scheme(name=scheme, rest="fp16", absmax_dtype=torch.float16))


def export(part: Part, scheme: EncoderScheme, folder: Path) -> Component:
    recipe = small_recipe(runtime="coreml", precision="fp16", text_encoder=scheme, compute_unit="cpu_gpu")
    return coreml.export_part(part, folder, recipe, Stages())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Applied, Component, Path]:
    folder = tmp_path_factory.mktemp("tied")
    part, applied = coded_part("nf4")
    return applied, export(part, "nf4", folder), folder


def test_coremltools_is_given_no_weight_that_is_coded(tmp_path: Path) -> None:
    part, _ = coded_part("int8")
    coded = CodedWeights()
    model = coreml._convert("tied", part.graphs["encode"], "fp16", coded, tmp_path / "model.mlpackage")
    before = Path(model.weights_dir, "weight.bin").stat().st_size
    assert before < WORDS * WIDTH / 2  # a bias
    coded.put_into(model.get_spec(), Path(model.weights_dir, "weight.bin"))
    assert Path(model.weights_dir, "weight.bin").stat().st_size > before + (WORDS + WIDTH) * WIDTH


def test_a_weight_that_layers_share_is_there_once(written: tuple[Applied, Component, Path]) -> None:
    applied, component, folder = written
    coded_bytes = sum(held.size_bytes for held in applied.coded.values())
    size = sum((folder / path).stat().st_size for path in component.files if path.endswith("weight.bin"))
    assert len(applied.coded) == 2
    assert coded_bytes < size < coded_bytes + WORDS * WIDTH / 2


def test_coremltools_reads_the_codes_as_they_were(written: tuple[Applied, Component, Path]) -> None:
    applied, component, folder = written
    package = open_package(folder / component.functions["encode"].path)
    specification = read_specification(package)
    with coreml.quiet():
        program = milproto.load(specification, specification.specificationVersion, str(package.weights))
    tables = program.functions["main"].find_ops(op_type="constexpr_lut_to_dense")
    found = {np.asarray(each.indices.val, np.uint8).tobytes() for each in tables}
    assert len(found) == 2
    for held in applied.coded.values():
        assert isinstance(held, HeldNf4)
        assert np.stack([held.codes.numpy() >> 4, held.codes.numpy() & 15], axis=-1).tobytes() in found


def test_no_decoded_weight_is_cast_while_the_program_runs(written: tuple[Applied, Component, Path]) -> None:
    _, component, folder = written
    program = read_program(open_package(folder / component.functions["encode"].path))
    coded = program.constants.coded
    assert {step.kind for step in program.steps if coded.keys() & {*step.bind.values()}} == {"gather", "linear"}
    assert all(each.half for each in program.constants.coded.values())


@pytest.mark.parametrize("scheme", ["nf4", "int8"])
def test_a_lookup_reads_its_rows_only_and_finds_the_same(scheme: EncoderScheme, tmp_path: Path) -> None:
    part, _ = coded_part(scheme)
    component = export(part, scheme, tmp_path)
    constants = read_program(open_package(tmp_path / component.functions["encode"].path)).constants
    rows = torch.tensor([0, 63, 17])
    for name in constants.coded:
        torch.testing.assert_close(constants.rows(name, rows), constants[name][rows], rtol=0, atol=0)


def test_a_word_that_is_not_in_the_table_is_refused(written: tuple[Applied, Component, Path]) -> None:
    _, component, folder = written
    program = read_program(open_package(folder / component.functions["encode"].path))
    with pytest.raises(Unsupported, match="gather"):
        program.run({"input_ids": torch.tensor([[0, WORDS + 4096, 1]]).int()})


def test_the_scales_of_int8_are_as_precise_as_the_program(tmp_path: Path) -> None:
    part, applied = coded_part("int8")
    component = export(part, "int8", tmp_path)
    constants = read_program(open_package(tmp_path / component.functions["encode"].path)).constants
    scales = {constants[each.bind["scale"]].numpy().tobytes() for each in constants.coded.values()}
    for held in applied.coded.values():
        assert isinstance(held, HeldInt8)
        assert held.scales.half().numpy().tobytes() in scales
