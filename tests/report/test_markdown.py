from __future__ import annotations

from pathlib import Path

from profiler.report.markdown import markdown
from profiler.report.terminal import tier_line
from tests.report.entries_for_tests import edit_run, entry_of, failed_run, hostile_run
from tests.runs_for_tests import make_run, make_samples


def test_the_answer_comes_first(tmp_path: Path) -> None:
    entry = entry_of(edit_run(), tmp_path)
    lines = markdown([entry]).splitlines()
    assert lines[0] == "# nano, edit"
    assert lines[2] == f"**{tier_line(entry.summary)}**"


def test_every_row_of_a_table_has_the_cells_of_its_head(tmp_path: Path) -> None:
    width = 0
    for line in markdown([entry_of(hostile_run(), tmp_path), entry_of(edit_run(), tmp_path)]).splitlines():
        cells = line.replace("\\|", "").count("|") if line.startswith("|") else 0
        assert cells in (0, width) or width == 0
        width = cells


def test_words_of_others_are_neither_markdown_nor_html(tmp_path: Path) -> None:
    text = markdown([entry_of(hostile_run(), tmp_path)])
    assert "<script" not in text.replace("\\<script", "")
    assert not set("\x1b\u202e") & set(text)


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    text = markdown([entry_of(failed_run(), tmp_path)])
    assert "**Ended early:** failed in denoise (denoiser): out\\_of\\_memory: no" in text
    assert "No image was finished." in text


def test_several_runs_begin_with_a_comparison(tmp_path: Path) -> None:
    text = markdown([entry_of(edit_run(), tmp_path), entry_of(failed_run(), tmp_path)])
    assert text.startswith("# 2 runs side by side\n")
    assert "| task (differs) | edit | generate |" in text


def test_samples_without_number_are_cut_with_a_word(tmp_path: Path) -> None:
    text = markdown([entry_of(make_run(iterations=make_samples((4 * 10**8,) * 500)), tmp_path)])
    assert "100 more are left out" in text
