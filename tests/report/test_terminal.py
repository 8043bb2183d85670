from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from profiler.catalog import policy
from profiler.quantities import GIB
from profiler.records.run import Doubt, Run
from profiler.report.summary import summarise
from profiler.report.terminal import counted, plain, policy_line, render, rows, tier_line, where
from profiler.validity import doubts
from tests.records_for_tests import LATENCIES_NS, make_memory
from tests.runs_for_tests import make_bundle_use, make_process, make_run, make_samples, make_settings, make_unit

HOSTILE = [
    "[bold]red[/bold]",
    "[/nothing]",
    "[link=https://example.com]here[/link]",
    "back\\slash[",
    ":cat: :warning:",
    "👩‍🚀🇪🇺",
    "\u202eright to left\u202c שלום",
    "x" * 300,
    "日本語" * 60,
    "",
]


def shown(run: Run, *, width: int = 100, colour: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colour, highlight=False)
    console.print(render(summarise(run, Path("/store/run"), policy("moi-bench"))))
    return stream.getvalue()


def unfolded(text: str) -> str:
    """Forget where lines were broken."""
    return "".join(text.split())


def failed(**fields: Any) -> Run:
    ended: dict[str, Any] = {"outcome": "failed", "reason": "out_of_memory: no", "stage": "denoise", **fields}
    ended = {"component": "denoiser", **ended}
    process = make_process(**ended, memory=None, first_image_ns=None)
    return make_run(iterations=(), processes=(process,), images=(), **ended)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_of_others_are_shown_as_they_are(text: str) -> None:
    run = make_run(settings=make_settings(prompt=text), unit=make_unit(processor=text), model=text)
    assert unfolded(f"“{text}”, seed 0") in unfolded(shown(run))


@pytest.mark.parametrize("text", [text for text in HOSTILE if text])
def test_a_reason_and_a_doubt_of_any_words_are_shown_as_they_are(text: str) -> None:
    doubt = Doubt(kind="charging", detail=text, advice="none")
    run = replace(failed(reason=text), doubts=(doubt,))
    assert unfolded(shown(run)).count(unfolded(text)) >= 2


def test_signs_that_move_the_cursor_or_colour_the_terminal_are_not_passed_on() -> None:
    run = make_run(settings=make_settings(prompt="a\x1b[31mb\x1b]0;title\x07c\rd\x08e\x9b2Jf"))
    text = shown(run)
    assert not set("\x1b\x07\r\x08\x9b") & set(text)
    assert "a�[31mb�]0;title�c�d�e�2Jf" in text


@given(st.text(max_size=80))
def test_any_text_at_all_can_be_shown(text: str) -> None:
    run = make_run(settings=make_settings(prompt=text))
    assert "Tier D4" in shown(run, colour=True)
    assert "\x1b" not in plain(text).plain


@pytest.mark.parametrize("width", [20, 40, 80, 300])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    run = replace(failed(reason="y" * 200), settings=make_settings(prompt="x" * 300))
    assert max(len(line) for line in shown(run, width=width).splitlines()) <= width


def test_the_best_tier_tells_what_is_closest_to_its_limit() -> None:
    text = shown(make_run())
    assert text.startswith("Tier D4, the best, on this machine, which is no phone. Closest to its limit: ")
    assert re.search(r"\(\d[\d.]* %, \d[\d.]* \w+ left\)", " ".join(text.split()))


def test_the_tier_of_a_virtual_phone_says_so_at_once() -> None:
    phone = replace(make_unit(is_phone=True, virtual=True), profile="pixel9")
    run = make_run(unit=phone)
    run = replace(run, doubts=doubts(run, ()))
    line = tier_line(summarise(run, Path(), policy("moi-bench")))
    assert line.startswith("Tier D4, the best, on a virtual phone. Closest to its limit: ")


def test_a_lower_tier_tells_what_keeps_it_from_the_next() -> None:
    run = make_run(processes=(make_process(memory=make_memory(peak_bytes=3 * 1024**3)),))
    line = tier_line(summarise(run, Path(), policy("moi-bench")))
    assert line.startswith("Tier D3, on this machine, which is no phone, limited by peak memory (3 GiB, ")
    assert "over the D4 limit of" in line


def test_a_failed_run_says_where_and_why() -> None:
    text = shown(failed())
    assert text.startswith("Tier none: the run failed.")
    assert "failed in denoise (denoiser): out_of_memory: no" in text
    assert "no timed image" in text
    assert "no process got as far as an image" in text
    assert "unknown: no process lived to its end" in text


def test_images_are_named_by_paths_that_can_be_copied() -> None:
    folder = Path("/a folder/" + "x" * 200)
    lines = where(summarise(make_run(), folder, policy("moi-bench"))).splitlines()
    assert [line for line in lines if line.startswith("output ")] == [f"output {folder}/images/0.ppm"]
    assert "no image" in where(summarise(failed(), folder, policy("moi-bench")))


def test_a_run_that_was_stopped_from_outside_has_no_tier() -> None:
    run = replace(make_run(), outcome="interrupted", reason="stopped by the user")
    assert shown(run).startswith("Tier unknown: the run was interrupted.")


def test_a_stage_named_as_its_component_is_said_once() -> None:
    assert "failed in denoiser: out_of_memory" in shown(failed(stage="denoiser"))


def test_a_failure_without_a_place_names_none() -> None:
    assert "failed: out_of_memory: no" in shown(failed(stage=None, component=None))


def test_a_tier_over_every_limit_is_none_though_the_run_completed() -> None:
    run = make_run(iterations=make_samples((10**13,) * 6), bundle=make_bundle_use(size_bytes=10**13))
    line = tier_line(summarise(run, Path(), policy("moi-bench")))
    assert line.startswith(("Tier none: over every limit.", "Tier D1, on this machine, which is no phone, limited by "))


def test_an_unknown_tier_names_what_was_not_measured() -> None:
    run = make_run(processes=(make_process(memory=None),))
    line = tier_line(summarise(run, Path(), policy("moi-bench")))
    assert line == "Tier unknown: peak memory was not measured."


def test_a_run_without_timed_images_has_no_latency_and_an_unknown_tier() -> None:
    text = shown(make_run(iterations=()))
    assert text.startswith("Tier unknown: latency was not measured.")
    assert "no timed image" in text


def test_one_process_is_not_called_a_median() -> None:
    assert "one fresh process, no spread" in shown(make_run())
    assert "median of 2 fresh processes" in shown(make_run(processes=(make_process(), make_process(process=1))))


def test_a_policy_says_whose_its_limits_are() -> None:
    summary = summarise(make_run(), Path(), policy("moi-bench"))
    assert policy_line(summary).startswith("Policy moi-bench: of its limits 8 chosen here, 1 stated by its source; ")


def test_the_next_tier_is_the_policys_own_and_not_the_next_number() -> None:
    moi = policy("moi-bench")
    without_d3 = replace(moi, tiers=tuple(rule for rule in moi.tiers if rule.tier != "D3"))
    size = {"size_bytes": 3 * GIB, "total_size_bytes": 3 * GIB}
    line = tier_line(summarise(make_run(bundle=make_bundle_use(**size)), Path(), without_d3))
    assert line.startswith("Tier D2, on this machine, which is no phone, limited by size (3 GiB, 2 GiB over the D4 ")


def test_below_every_tier_only_what_is_over_is_named() -> None:
    moi = policy("moi-bench")
    strict = replace(moi, tiers=moi.tiers[:1])
    size = {"size_bytes": 3 * GIB, "total_size_bytes": 3 * GIB}
    line = tier_line(summarise(make_run(bundle=make_bundle_use(**size)), Path(), strict))
    assert (
        line
        == "Tier none, on this machine, which is no phone, limited by size (3 GiB, 2 GiB over the D4 limit of 1 GiB)."
    )


def test_what_was_withheld_is_not_called_unmeasured() -> None:
    run = make_run(iterations=make_samples((400, 0, 400)))
    run = replace(run, doubts=doubts(run, ()))
    assert tier_line(summarise(run, Path(), policy("moi-bench"))) == "Tier unknown: latency was withheld."


@pytest.mark.parametrize(("number", "words"), [(1, "1 pair"), (2, "2 pairs"), (0, "0 pairs")])
def test_one_thing_is_one(number: int, words: str) -> None:
    assert counted(number, "pair") == words


def test_the_text_encoders_scheme_is_named_where_it_differs_from_the_precision() -> None:
    run = make_run()
    assert "text encoder nf4" not in shown(run)
    assert "fp32,textencodernf4" in unfolded(shown(replace(run, recipe=replace(run.recipe, text_encoder="nf4"))))


@pytest.mark.parametrize(
    ("n", "words"), [(3, ", which covers 75 %)"), (5, ", which covers 93.8 %)"), (6, "statistics)")]
)
def test_an_interval_says_what_so_few_images_can_cover(n: int, words: str) -> None:
    run = make_run(iterations=make_samples(LATENCIES_NS[:n]))
    cells = dict(rows(summarise(run, Path(), policy("moi-bench"))))
    assert cells["latency, burst"].endswith(words)


def test_a_run_that_ends_in_a_tensor_says_that_there_is_no_image() -> None:
    run = make_run(settings=make_settings(width=None, height=None, prompt=""), images=())
    summary = summarise(run, Path("/folder"), policy("moi-bench"))
    assert "no image: the graph's output is a tensor" in where(summary)
    assert "no image: the graph's output is a tensor" in " ".join(shown(run).split())
