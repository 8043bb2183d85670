"""Reading stage: the text encoder learns alone to tell what each sentence says before any picture depends on it.

Without it the colours of two figures swap: the denoiser alone is too weak a teacher of which word belongs to which.
"""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import CLIPTextModel, CLIPTokenizer

from scripts.nano.edits import EDIT_OPS, sample_edit
from scripts.nano.language import Mention, Sentence, describe_edit, describe_scene
from scripts.nano.networks import Reader
from scripts.nano.scenes import BACKGROUNDS, COLOURS, PLACES, SHAPES, SIZES, Split, sample_scene
from scripts.nano.stages import Draw, Settings
from scripts.nano.tokens import MAX_TOKENS

# Field -> its words; class 0 of each field means "not said".
FIELDS: dict[str, tuple[str, ...]] = {
    "shape": SHAPES,
    "colour": tuple(COLOURS),
    "size": SIZES,
    "place": PLACES,
    "background": tuple(BACKGROUNDS),
    "op": ("generate", *EDIT_OPS),
}
CLASS_COUNTS = tuple(len(words) + 1 for words in FIELDS.values())
# One slot per place, two for figures whose place is not said, then an edit's subject, its argument, and the whole.
_UNPLACED, _SUBJECT, _ARGUMENT, _WHOLE = len(PLACES), len(PLACES) + 2, len(PLACES) + 3, len(PLACES) + 4
SLOT_COUNT = _WHOLE + 1


def sample_sentence(rng: Random, split: Split) -> Sentence:
    """Draw a prompt or an instruction, as often the one as the other; two-figure prompts come twice as often."""
    if rng.random() < 0.5:
        return describe_scene(rng, sample_scene(rng, rng.choice((1, 2, 2)), split))
    return describe_edit(rng, sample_edit(rng, rng.choice(EDIT_OPS), split))


def _write_mention(slots: Tensor, slot: int, mention: Mention) -> None:
    for column, field in enumerate(("shape", "colour", "size", "place")):
        word = getattr(mention, field)
        if word is not None:
            slots[slot, column] = FIELDS[field].index(word) + 1


def meaning_of(sentence: Sentence) -> Tensor:
    """Write a sentence's meaning as class numbers, [slots, fields]."""
    slots = torch.zeros(SLOT_COUNT, len(FIELDS), dtype=torch.long)
    slots[_WHOLE, 4] = 1 + FIELDS["background"].index(sentence.background) if sentence.background else 0
    slots[_WHOLE, 5] = 1 + FIELDS["op"].index(sentence.op)
    if sentence.subject:
        _write_mention(slots, _SUBJECT, sentence.subject)
    unplaced = _UNPLACED
    for mention in sentence.mentions:
        if sentence.op != "generate":
            _write_mention(slots, _ARGUMENT, mention)
        elif mention.place:
            _write_mention(slots, PLACES.index(mention.place), mention)
        else:
            _write_mention(slots, unplaced, mention)
            unplaced += 1
    return slots


def encode_texts(tokenizer: CLIPTokenizer, texts: list[str]) -> Tensor:
    """Turn texts into token ids, [n, 32]."""
    batch = tokenizer(texts, padding="max_length", max_length=MAX_TOKENS, truncation=True, return_tensors="pt")
    ids: Tensor = batch.input_ids
    return ids


def reading_loss(reader: Reader, states: Tensor, meanings: Tensor) -> tuple[Tensor, float]:
    """Compute the cross entropy of reading back meanings [n, slots, fields], and the share of sentences read right."""
    losses, right = [], torch.ones(len(meanings), dtype=torch.bool)
    for column, logits in enumerate(reader(states)):
        truth = meanings[..., column]
        losses.append(functional.cross_entropy(logits.float().flatten(0, 1), truth.flatten()))
        right &= (logits.argmax(-1) == truth).all(-1)
    return torch.stack(losses).sum(), right.float().mean().item()


class ReadingStage:
    """Train the text encoder and its reader on sentences alone."""

    name = "text"

    def __init__(self, tokenizer: CLIPTokenizer, encoder: CLIPTextModel, reader: Reader, settings: Settings) -> None:
        self.settings = settings
        self.tokenizer = tokenizer
        self.encoder, self.reader = encoder, reader
        self.modules: dict[str, nn.Module] = {"text_encoder": encoder, "reader": reader}
        self.averages: dict[str, nn.Module] = {}

    def rate_of(self, module: str, step: int) -> float:
        """Train all modules at the stage's rate."""
        return 1.0

    def loss(self, step: int, draw: Draw) -> tuple[Tensor, dict[str, float]]:
        """Compute the reading loss of fresh sentences."""
        sentences = [sample_sentence(draw.rng, "train") for _ in range(self.settings.batch)]
        ids = encode_texts(self.tokenizer, [sentence.text for sentence in sentences])
        with torch.autocast("cpu", torch.bfloat16):
            states = self.encoder(ids).last_hidden_state
            loss, right = reading_loss(self.reader, states, torch.stack([meaning_of(s) for s in sentences]))
        return loss, {"read": right}
