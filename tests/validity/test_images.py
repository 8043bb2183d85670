from __future__ import annotations

import pytest

from profiler.quantities import NS_PER_S
from profiler.records.run import ImageFile, Run
from profiler.validity import same_image
from tests.records_for_tests import BOOT_NS, SHA_IMAGE
from tests.runs_for_tests import make_run, make_sample, make_samples, make_settings
from tests.validity.evidence_for_tests import images, kinds, noisy, only_doubt, sound_run


@pytest.mark.parametrize(("deviation", "expected"), [(0.99, ["blank_image"]), (1.0, []), (None, [])])
def test_an_image_of_hardly_any_deviation_is_blank(deviation: float | None, expected: list[str]) -> None:
    image = ImageFile(path="output.png", sha256=SHA_IMAGE, role="output", deviation_levels=deviation)
    assert kinds(sound_run(images=(image,))) == expected


def test_a_flat_source_is_the_users_business() -> None:
    source = ImageFile(path="source.png", sha256=SHA_IMAGE, role="source", deviation_levels=0.0)
    assert kinds(sound_run(images=(source,))) == []


@pytest.mark.parametrize(("threads", "told"), [(1, "One thread was used already"), (4, "with --threads 1")])
def test_advice_on_images_that_differ_depends_on_the_threads(threads: int, told: str) -> None:
    other = make_sample(phase="observer", start_boot_ns=BOOT_NS + 60 * NS_PER_S, image_sha256="0" * 64)
    run = sound_run(iterations=images(make_samples(noisy(5)), other), settings=make_settings(threads=threads))
    doubt = only_doubt(run)
    assert doubt.kind == "not_deterministic"
    assert "2 different images in 8" in doubt.detail
    assert told in doubt.advice


def _made(run_id: str, inputs: str, image: str) -> Run:
    output = ImageFile(path="output.png", sha256=image, role="output")
    source = ImageFile(path="source.png", sha256="the same source", role="source")
    return make_run(run_id=run_id, settings=make_settings(inputs_sha256=inputs), images=(source, output))


def test_the_same_image_from_different_inputs_is_found_among_runs() -> None:
    runs = [_made("a", "x", "1"), _made("b", "x", "1"), _made("c", "y", "2"), _made("d", "y", "1")]
    assert same_image(runs) == (("a", "d"),)
    assert same_image(runs[:3]) == ()
