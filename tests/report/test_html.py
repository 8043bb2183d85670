from __future__ import annotations

import base64
import csv
import io
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from profiler.records.run import Doubt
from profiler.report.entry import Entry
from profiler.report.html import page
from profiler.report.terminal import rows, tier_line
from tests.report.entries_for_tests import HOSTILE, edit_run, entry_of, failed_run, hostile_run, make_entry, make_trace
from tests.report.page_for_tests import Page
from tests.runs_for_tests import make_run, make_samples, make_settings

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "whole": make_entry(folder / "whole"),
        "edit": entry_of(edit_run(run_id="20260101-000000-000-ed17"), folder / "edit", (make_trace(),)),
        "failed": entry_of(failed_run(run_id="20260101-000000-000-fa11"), folder / "failed"),
        "hostile": entry_of(
            replace(hostile_run(), run_id="20260101-000000-000-0b5e"), folder / "hostile", (make_trace(),)
        ),
    }


@pytest.fixture(scope="module")
def pages(entries: dict[str, Entry]) -> dict[str, str]:
    alone = {name: page([entry], "0.1.0") for name, entry in entries.items()}
    return {**alone, "all": page(list(entries.values()), "0.1.0"), "many": page([entries["edit"]] * 7, "0.1.0")}


NAMES = ["whole", "edit", "failed", "hostile", "all", "many"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_well_formed(pages: dict[str, str], name: str) -> None:
    assert pages[name].lstrip().startswith("<!doctype html>")
    found = Page(pages[name])
    assert (found.misplaced, found.unclosed) == ([], [])
    assert found.one("html").attributes["lang"] == "en"
    assert len(found.one("title").words) > 5
    ids = [element.attributes["id"] for element in found.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_nothing_and_runs_nothing(pages: dict[str, str], name: str) -> None:
    found = Page(pages[name])
    assert found.one("meta", http_equiv="Content-Security-Policy").attributes["content"] == POLICY
    tags = {element.tag for element in found.elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "base", "form"}
    for element in found.elements:
        assert not [name for name in element.attributes if name.startswith("on")]
        for attribute in ("src", "href", "xlink:href", "action", "srcset"):
            assert element.attributes.get(attribute, "#").startswith(("#", "data:image/png;", "data:text/csv;"))
    styles = " ".join(element.words for element in found.all("style"))
    assert "url(" not in styles
    assert "@import" not in styles
    assert not re.search(r"url\((?!#)", pages[name])


@pytest.mark.parametrize("name", NAMES)
def test_every_reference_inside_a_page_has_its_target(pages: dict[str, str], name: str) -> None:
    found = Page(pages[name])
    ids = {element.attributes["id"] for element in found.elements if "id" in element.attributes}
    links = {e.attributes["href"][1:] for e in found.elements if e.attributes.get("href", "").startswith("#")}
    labels = {e.attributes["aria-labelledby"] for e in found.elements if "aria-labelledby" in e.attributes}
    assert links | labels | set(re.findall(r"url\(#([^)]+)\)", pages[name])) <= ids


@pytest.mark.parametrize("name", NAMES)
def test_headings_follow_one_another_without_a_step_left_out(pages: dict[str, str], name: str) -> None:
    levels = [int(e.tag[1]) for e in Page(pages[name]).elements if re.fullmatch("h[1-6]", e.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_says_in_words_what_it_shows(pages: dict[str, str], name: str) -> None:
    found = Page(pages[name])
    assert all(image.attributes["alt"] for image in found.all("img"))
    drawings = [element for element in found.elements if element.attributes.get("role") == "img"]
    assert all(re.search(r"\d", drawing.attributes["aria-label"]) for drawing in drawings)
    assert all(svg.attributes["aria-hidden"] == "true" and "div" in svg.ancestors for svg in found.all("svg"))
    assert len(found.all("figcaption")) == len(found.all("figure"))


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_captions_and_heads(pages: dict[str, str], name: str) -> None:
    found = Page(pages[name])
    assert len(found.all("caption")) == len(found.all("table"))
    assert all(head.attributes.get("scope") in ("row", "col") for head in found.all("th"))


def test_what_scrolls_can_be_reached_by_the_keyboard(pages: dict[str, str]) -> None:
    for region in Page(pages["all"]).all("div", class_="scroll"):
        assert (region.attributes["tabindex"], region.attributes["role"]) == ("0", "region")
        assert region.attributes["aria-label"]
    assert Page(pages["whole"]).one("a", class_="skip").attributes["href"] == "#main"


def test_the_answer_comes_first(pages: dict[str, str], entries: dict[str, Entry]) -> None:
    found = Page(pages["whole"])
    assert found.one("h1").words == tier_line(entries["whole"].summary)
    order = [e.words for e in found.elements if e.tag in ("h1", "h2")]
    assert order[0].startswith("Tier D4")
    assert order[-1] == "Raw samples"


def test_every_number_is_as_the_terminal_says_it(pages: dict[str, str], entries: dict[str, Entry]) -> None:
    text = " ".join(e.words for e in Page(pages["whole"]).all("td"))
    for _, value in rows(entries["whole"].summary):
        assert " ".join(value.split()) in text


def test_the_alt_text_of_the_latency_says_the_numbers(pages: dict[str, str]) -> None:
    labels = [e.attributes["aria-label"] for e in Page(pages["edit"]).all("div", role="img")]
    (latency,) = [label for label in labels if label.startswith("Latency of 25 timed images in run order")]
    assert "median 412 ms, 95 % interval 407 ms to 417 ms" in latency
    assert "1 cold, 2 observer, 25 timed, 1 warmup" in latency


def test_an_edit_shows_its_source_before_its_result(pages: dict[str, str]) -> None:
    alts = [image.attributes["alt"] for image in Page(pages["edit"]).all("img")]
    assert [alt.split(" for ")[0] for alt in alts] == ["Source image of the edit", "Image that the model made"]


def test_a_failed_run_says_what_where_and_why_and_shows_no_zero(pages: dict[str, str]) -> None:
    found = Page(pages["failed"])
    assert found.one("h1").words == "Tier none: the run failed."
    assert found.one("p", class_="failure").words == "Ended early. failed in denoise (denoiser): out_of_memory: no"
    assert [e.words for e in found.all("p", class_="value")][:2] == ["not measured", "unknown"]
    assert found.all("img") == []
    assert "No image: the run ended before one was finished." in pages["failed"]


def test_gauges_that_are_missing_say_why(pages: dict[str, str]) -> None:
    assert "No battery: no battery" in [e.words for e in Page(pages["whole"]).all("li")]


def test_words_of_others_stay_words(pages: dict[str, str]) -> None:
    found = Page(pages["hostile"])
    assert found.all("script") == []
    assert [image for image in found.all("img") if image.attributes["src"] == "x"] == []
    shown = HOSTILE.replace("\u202e", "�").replace("\x1b", "�")
    assert " ".join(shown.split()) in " ".join(e.words for e in found.all("td"))
    assert "49" not in found.one("blockquote").words
    assert not set("\x1b\u202e\u202d\x00") & set(pages["hostile"])


def test_an_image_outside_the_runs_folder_is_not_read(pages: dict[str, str]) -> None:
    assert "its record names a file outside the run&#39;s folder" in pages["hostile"]


def test_the_raw_samples_are_inside_and_whole(pages: dict[str, str], entries: dict[str, Entry]) -> None:
    found = Page(pages["edit"])
    (link,) = [a for a in found.all("a") if "download" in a.attributes]
    data = base64.b64decode(link.attributes["href"].partition(",")[2]).decode()
    kept = list(csv.DictReader(io.StringIO(data)))
    assert [int(row["duration_ns"]) for row in kept] == [s.duration_ns for s in entries["edit"].run.iterations]
    details = found.one("details")
    assert "Show 29 images in the order made" in details.words


def test_samples_without_number_are_shown_in_part_and_kept_whole(tmp_path: Path) -> None:
    run = make_run(iterations=make_samples((400_000_000,) * 1000), images=())
    text = page([entry_of(run, tmp_path)], "0")
    assert "600 in the middle are left out here" in text
    assert len(Page(text).all("tr")) < 500


def test_too_many_images_for_a_page_are_left_to_a_command(tmp_path: Path) -> None:
    run = make_run(iterations=make_samples((400_000_000,) * 20_001), images=())
    text = page([entry_of(run, tmp_path)], "0")
    assert "data:text/csv" not in text
    assert f"profile report {run.run_id} -o {run.run_id}.samples.csv" in text
    assert "Of each 41 images the fastest, the middle and the slowest one are drawn." in text
    assert len(text) < 1_000_000


def test_a_page_of_many_images_says_its_prompt_a_few_times_only(tmp_path: Path) -> None:
    run = make_run(
        settings=make_settings(prompt="word " * 20_000), iterations=make_samples((400_000_000,) * 100), images=()
    )
    assert len(page([entry_of(run, tmp_path)], "0")) < 1_000_000


def test_a_comparison_names_every_doubt(tmp_path: Path) -> None:
    kinds: tuple[Any, ...] = ("not_a_phone", "virtual_device", "random_weights", "background_load", "oversubscribed")
    kinds += ("blank_image", "unchanged_image", "not_deterministic", "too_few", "wide_interval", "observer_effect")
    run = make_run(images=(), doubts=tuple(Doubt(kind=kind, detail="x", advice="y") for kind in kinds))
    found = Page(page([entry_of(run, tmp_path), entry_of(replace(run, run_id="other"), tmp_path)], "0"))
    rows = [row.words for row in found.all("tr")]
    assert any(all(kind.replace("_", " ") in row for kind in kinds) and row.startswith("doubts") for row in rows)


def test_several_runs_are_compared_before_each_is_told(pages: dict[str, str], entries: dict[str, Entry]) -> None:
    found = Page(pages["all"])
    table = next(e for e in found.all("table") if "compare" in e.attributes["class"])
    assert [e.words for e in found.all("th", scope="col")][:3] == ["run", "nano, generate, 5eed", "nano, edit"]
    assert table.attributes["class"] == "grid compare"
    assert [e.words for e in found.all("tr", class_="differs")]
    assert len(found.all("article")) == len(entries)
    assert "not like for like" in found.one("p", class_="lead").words


def test_the_same_runs_give_the_same_page(entries: dict[str, Entry], pages: dict[str, str]) -> None:
    assert page([entries["edit"]], "0.1.0") == pages["edit"]


def test_every_colour_of_a_drawing_follows_the_theme(pages: dict[str, str]) -> None:
    drawings = re.findall(r"<svg.*?</svg>", pages["edit"], re.DOTALL)
    assert drawings
    for drawing in drawings:
        assert "var(--" in drawing
        assert not re.search(r"#[0-9a-f]{6}\b", drawing)
        assert "<style" not in drawing
        assert "<metadata" not in drawing


def test_text_in_drawings_is_large_enough_to_read_on_a_phone(pages: dict[str, str]) -> None:
    narrow = re.findall(r"<svg viewBox=\"0 0 352.*?</svg>", pages["edit"], re.DOTALL)
    sizes = [float(size) for drawing in narrow for size in re.findall(r"([\d.]+)px", drawing)]
    assert len(narrow) >= 5
    assert min(sizes) >= 9


def test_a_run_that_ends_in_a_tensor_says_so_in_the_place_of_its_picture(tmp_path: Path) -> None:
    tensor = make_settings(width=None, height=None, prompt="", made_up_inputs=("sample", "timestep"))
    entry = make_entry(tmp_path / "run", settings=tensor, images=())
    for html in (page([entry], "0"), page([entry, entry], "0")):
        words = Page(html).all("body")[0].words
        assert "No image: the graph's output is a tensor." in words
        assert "None×None" not in words
        assert "sample, timestep" in words
