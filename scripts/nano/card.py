"""Card: the model card, written from measured scores only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Json = dict[str, Any]

_TEMPLATE = Path(__file__).with_name("card_template.md")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _score_row(name: str, rate: Json) -> str:
    interval = "–" if rate["interval_95"] is None else " … ".join(_percent(bound) for bound in rate["interval_95"])
    return f"| {name} | {_percent(rate['share'])} | {interval} | {rate['n']} |"


def _score_rows(scores: Json) -> list[str]:
    one, two, edit = scores["generate_one_figure"], scores["generate_two_figures"], scores["edit"]
    return [
        _score_row("prompts of one figure", one["right"]),
        _score_row("… where all is named", one["right_where_all_is_named"]),
        _score_row("prompts of two figures", two["right"]),
        _score_row("… where all is named", two["right_where_all_is_named"]),
        _score_row("edits", edit["right"]),
        _score_row("edits, if the source were returned unchanged", edit["right_if_source_is_returned"]),
        _score_row("scenes encoded and decoded (ceiling)", scores["autoencoder"]["right"]),
    ]


def _attribute_row(name: str, per_attribute: Json) -> str:
    return f"| {name} | {' | '.join(_percent(rate['share']) for rate in per_attribute.values())} |"


def _edit_row(name: str, rates: Json) -> str:
    shares = " | ".join(_percent(rates[key]["share"]) for key in ("right", "done", "preserved"))
    error = rates["unchanged_error_levels_mean"]
    return f"| {name} | {shares} | {'–' if error is None else error} | {rates['right']['n']} |"


def _call(sampling: Json) -> str:
    names = {
        "num_inference_steps": "steps",
        "guidance_scale": "text_guidance",
        "image_guidance_scale": "image_guidance",
    }
    return ", ".join(f'"{argument}": {sampling[name]}' for argument, name in names.items())


def _parameter_rows(parameters: Json) -> list[str]:
    classes = {"text_encoder": "CLIPTextModel", "unet": "UNet2DConditionModel", "vae": "AutoencoderTiny"}
    return [f"| {name} | {classes[name]} | {count:,} |" for name, count in parameters.items()]


def folder_bytes(folder: Path) -> int:
    """Sum the sizes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def render_card(result: Json, size_bytes: int, vocabulary: int) -> str:
    """Render the card from a score result."""
    plan, scores = result["plan"], result["scores"]
    one, two = scores["generate_one_figure"]["per_attribute"], scores["generate_two_figures"]["per_attribute"]
    edits = {"all": scores["edit"], **scores["edit"]["per_op"]}
    training = [f"* {k}: {v['steps']} steps, {v['train_seconds'] / 60:.0f} min" for k, v in result["training"].items()]
    return _TEMPLATE.read_text().format(
        total_parameters=sum(result["parameters"].values()) / 1e6,
        size_mb=size_bytes / 1e6,
        vocabulary=vocabulary,
        parameter_rows="\n".join(_parameter_rows(result["parameters"])),
        generate_call=_call(plan["generate"]),
        edit_call=_call(plan["edit"]),
        flow_shift=result["flow_shift"],
        seed=plan["seed"],
        steps=plan["generate"]["steps"],
        text_guidance=plan["generate"]["text_guidance"],
        edit_text_guidance=plan["edit"]["text_guidance"],
        generate_image_guidance=plan["generate"]["image_guidance"],
        edit_image_guidance=plan["edit"]["image_guidance"],
        score_rows="\n".join(_score_rows(scores)),
        kinds=" | ".join(one),
        kind_rule="---|" * len(one),
        attribute_rows="\n".join([_attribute_row("one figure", one), _attribute_row("two figures", two)]),
        edit_rows="\n".join(_edit_row(name, rates) for name, rates in edits.items()),
        training_rows="\n".join(training),
    )


def write_card(folder: Path, result: Json, vocabulary: int) -> None:
    """Write the card into a folder."""
    (folder / "README.md").write_text(render_card(result, folder_bytes(folder), vocabulary))
