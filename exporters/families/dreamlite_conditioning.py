"""What DreamLite does before its loop, and which predictions it mixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from exporters.conditioning import (
    NEGATIVE_IDS,
    NEGATIVE_MASK,
    PROMPT_IDS,
    PROMPT_MASK,
    SOURCE_IMAGE,
    Branch,
    Conditioning,
    ids_port,
)
from exporters.guidance import NEGATIVE_STATES, TEXT_STATES, ZERO_LATENTS, guidance_of
from profiler.errors import InputError
from profiler.records.plan import Call, Constant, Guidance, Port
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

SOURCE_LATENTS = "source_latents"


class Words(NamedTuple):
    """A plan's names for one text on its way to states."""

    ids: str
    mask: str
    embeddings: str
    merged: str
    states: str


_PROMPT = Words(PROMPT_IDS, PROMPT_MASK, "prompt_embeds", "prompt_with_picture", TEXT_STATES)
_NEGATIVE = Words(NEGATIVE_IDS, NEGATIVE_MASK, "negative_embeds", "negative_with_picture", NEGATIVE_STATES)


class Conditioner(NamedTuple):
    """Conditions either pipeline's tasks; `guided` tells the base one from the mobile one, which has no guidance."""

    guided: bool
    length: int
    image: tuple[int, int, int]
    position_ids: Mapping[Task, Constant]

    def condition(self, task: Task, settings: TaskDefaults) -> Conditioning:
        """Encode the picture, then texts, of which edits see it in the place of image tokens."""
        guidance = guidance_of(settings)
        branches = self._branches(task, guidance)
        states = {branch.bind["text_states"] for branch in branches}
        texts = [words for words in (_PROMPT, _NEGATIVE) if words.states in states]
        ports = [ids_port(name, self.length) for words in texts for name in (words.ids, words.mask)]
        if task == "edit":
            ports.append(Port(name=SOURCE_IMAGE, dtype="float32", shape=(1, *self.image)))
        return Conditioning(
            inputs=tuple(ports),
            calls=tuple(_calls(task, texts)),
            branches=branches,
            constants={"position_ids": self.position_ids[task]},
        )

    def _branches(self, task: Task, guidance: Guidance) -> tuple[Branch, ...]:
        if not self.guided:
            return _without_guidance(task, guidance)
        return edit_branches(guidance) if task == "edit" else generate_branches(guidance)


def generate_branches(guidance: Guidance) -> tuple[Branch, ...]:
    """Return u + g (t − u) as weights. Raises InputError for image guidance."""
    if guidance.image is not None:
        raise InputError("image guidance was given, but generation sees no source image", hint="Leave it out.")
    return _of_weight(
        _branch("text", guidance.text, _PROMPT, ZERO_LATENTS),
        _branch("negative", 1 - guidance.text, _NEGATIVE, ZERO_LATENTS),
    )


def edit_branches(guidance: Guidance) -> tuple[Branch, ...]:
    """Return u + g (t − s) + i (s − u) as weights; s sees the source and the negative prompt, u only the latter."""
    text, image = guidance.text, 1.0 if guidance.image is None else guidance.image
    return _of_weight(
        _branch("text", text, _PROMPT, SOURCE_LATENTS),
        _branch("image", image - text, _NEGATIVE, SOURCE_LATENTS),
        _branch("blank", 1 - image, _NEGATIVE, ZERO_LATENTS),
    )


def _without_guidance(task: Task, guidance: Guidance) -> tuple[Branch, ...]:
    if guidance.text != 1 or guidance.image not in (None, 1):
        raise InputError(
            "guidance was given, but this model was distilled to need none",
            hint="Leave both at 1.",
        )
    return (_branch("text", 1.0, _PROMPT, SOURCE_LATENTS if task == "edit" else ZERO_LATENTS),)


def _branch(name: str, weight: float, words: Words, source: str) -> Branch:
    return Branch(name, weight, {"source_latents": source, "text_states": words.states, "text_mask": words.mask})


def _of_weight(*branches: Branch) -> tuple[Branch, ...]:
    """Leave out what would be multiplied by zero."""
    return tuple(branch for branch in branches if branch.weight)


def _calls(task: Task, texts: list[Words]) -> Iterator[Call]:
    """Yield calls so that each component's follow each other, for it to be loaded only then."""
    edits = task == "edit"
    if edits:
        yield _call("vision_encoder", "encode", [SOURCE_IMAGE], image_embeds="image_embeds", visual="visual")
        yield _call("image_encoder", "encode", [SOURCE_IMAGE], source_latents=SOURCE_LATENTS)
    for words in texts:
        yield _call("token_embedding", "embed", {"input_ids": words.ids}, inputs_embeds=words.embeddings)
    if edits:
        for words in texts:
            given = {"inputs_embeds": words.embeddings, "image_embeds": "image_embeds"}
            yield _call("compose", "with_image", given, merged=words.merged)
    else:
        yield _call("compose", "text_only", {"inputs_embeds": texts[0].embeddings}, visual="visual")
    for words in texts:
        given = {"inputs_embeds": words.merged if edits else words.embeddings}
        given |= {"position_ids": "position_ids", "visual": "visual"}
        yield _call("text_encoder", "encode", given, text_states=words.states)


_STAGES = {"token_embedding": "text_encoder", "compose": "text_encoder"}


def _call(component: str, function: str, given: dict[str, str] | list[str], **emitted: str) -> Call:
    return Call(
        component=component,
        function=function,
        bind=given if isinstance(given, dict) else {name: name for name in given},
        emit=emitted,
        stage=_STAGES.get(component, component),
    )
