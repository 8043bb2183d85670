"""Language: templated English for scenes and edits, together with what each sentence says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from scripts.nano.edits import Edit
from scripts.nano.scenes import BACKGROUNDS, COLOURS, PLACES, SHAPES, SIZES, Figure, Scene


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A figure as far as a sentence names it; None is left to the model."""

    shape: str | None = None
    colour: str | None = None
    size: str | None = None
    place: str | None = None

    def fits(self, figure: Figure) -> bool:
        """Tell whether a figure is as the mention says."""
        named = ((self.shape, figure.shape), (self.colour, figure.colour), (self.size, figure.size))
        return all(said in (None, is_) for said, is_ in (*named, (self.place, figure.place)))


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text and its meaning: figures named in order, the figure an edit refers to, and the background."""

    text: str
    op: str
    mentions: tuple[Mention, ...] = ()
    subject: Mention | None = None
    background: str | None = None


_CORNERS = {place for place in PLACES if " " in place}
_SINGLE = ("{a}", "{a}", "{a} on a {bg} background", "a {bg} background with {a}", "on a {bg} background, {a}",
           "a picture of {a}", "a drawing of {a} on a {bg} background")  # fmt: skip
_DOUBLE = ("{a} and {b}", "{a}, {b}", "{a} and {b} on a {bg} background", "a {bg} background with {a} and {b}",
           "on a {bg} background, {a} and {b}", "a picture of {a} and {b}")  # fmt: skip
_RECOLOUR = ("make the {s} {c}", "turn the {s} {c}", "paint the {s} {c}", "recolour the {s} {c}", "recolor the {s} {c}",
             "change the colour of the {s} to {c}", "change the color of the {s} to {c}")  # fmt: skip
_REPLACE = ("replace the {s} with {a}", "turn the {s} into {a}", "change the {s} into {a}", "swap the {s} for {a}")
_REMOVE = ("remove the {s}", "delete the {s}", "erase the {s}", "take away the {s}")
_ADD = ("add {a}", "put {a}", "place {a}", "insert {a}")
_MOVE = ("move the {s} to the {p}", "shift the {s} to the {p}", "put the {s} at the {p}", "place the {s} at the {p}")
_BACKGROUND = ("change the background to {bg}", "make the background {bg}", "turn the background {bg}",
               "use a {bg} background", "paint the background {bg}")  # fmt: skip
_ALL_TEMPLATES = (*_SINGLE, *_DOUBLE, *_RECOLOUR, *_REPLACE, *_REMOVE, *_ADD, *_MOVE, *_BACKGROUND)
_OTHER_WORDS = ("an", "image", "in", "at", "on", "middle", "center", "corner", "shape", "gray")


def vocabulary() -> list[str]:
    """List every word that the templates can produce, sorted."""
    phrases = (*SHAPES, *SIZES, *PLACES, *COLOURS, *BACKGROUNDS, *_OTHER_WORDS, *_ALL_TEMPLATES)
    return sorted({word for phrase in phrases for word in re.findall(r"[a-z]+", re.sub(r"{\w+}", " ", phrase))})


def _place_noun(rng: Random, place: str) -> str:
    if place == "centre":
        return rng.choice(("centre", "center", "middle"))
    return f"{place} corner" if place in _CORNERS and rng.random() < 0.3 else place


def _place_phrase(rng: Random, place: str) -> str:
    noun = _place_noun(rng, place)
    if place in ("left", "right"):
        return f"on the {noun}"
    if place in ("top", "bottom"):
        return f"at the {noun}"
    return f"{rng.choice(('in', 'at'))} the {noun}"


def _words(mention: Mention) -> str:
    return " ".join(word for word in (mention.size, mention.colour, mention.shape or "shape") if word)


def _article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _noun_phrase(rng: Random, mention: Mention) -> str:
    phrase = _article(_words(mention))
    return f"{phrase} {_place_phrase(rng, mention.place)}" if mention.place else phrase


def _reference(rng: Random, mention: Mention) -> str:
    words = _words(mention)
    return f"{words} {_place_phrase(rng, mention.place)}" if mention.place else words


def _background_word(rng: Random, background: str) -> str:
    return rng.choice(("grey", "gray")) if background == "grey" else background


def mention_some(rng: Random, figure: Figure) -> Mention:
    """Name a figure's shape and most of the rest."""
    return Mention(
        shape=figure.shape,
        colour=figure.colour if rng.random() < 0.92 else None,
        size=figure.size if rng.random() < 0.7 else None,
        place=figure.place if rng.random() < 0.75 else None,
    )


def mention_apart(rng: Random, figure: Figure, scene: Scene) -> Mention:
    """Name just enough of a figure, in a random way, that it fits no other in the scene."""
    others = [other for other in scene.figures if other != figure]
    while True:
        mention = Mention(
            shape=figure.shape if rng.random() < 0.85 else None,
            colour=figure.colour if rng.random() < 0.6 else None,
            size=figure.size if rng.random() < 0.2 else None,
            place=figure.place if rng.random() < 0.2 else None,
        )
        if mention != Mention() and not any(mention.fits(other) for other in others):
            return mention


def describe_scene(rng: Random, scene: Scene) -> Sentence:
    """Phrase a prompt for a scene of one or two figures, some attributes left out."""
    mentions = [mention_some(rng, figure) for figure in scene.figures]
    rng.shuffle(mentions)
    template = rng.choice(_SINGLE if len(mentions) == 1 else _DOUBLE)
    named = dict(zip("ab", (_noun_phrase(rng, mention) for mention in mentions), strict=False))
    text = template.format(**named, bg=_background_word(rng, scene.background))
    background = scene.background if "{bg}" in template else None
    return Sentence(text=text, op="generate", mentions=tuple(mentions), background=background)


def describe_edit(rng: Random, edit: Edit) -> Sentence:
    """Phrase an instruction for an edit."""
    if edit.op == "background":
        text = rng.choice(_BACKGROUND).format(bg=_background_word(rng, edit.target.background))
        return Sentence(text=text, op=edit.op, background=edit.target.background)
    if edit.subject is None:
        return _describe_addition(rng, edit)
    subject = mention_apart(rng, edit.subject, edit.source)
    reference = _reference(rng, subject)
    if edit.result is None:
        return Sentence(text=rng.choice(_REMOVE).format(s=reference), op=edit.op, subject=subject)
    text, mention = _describe_change(rng, edit.op, reference, edit.subject, edit.result)
    return Sentence(text=text, op=edit.op, subject=subject, mentions=(mention,))


def _describe_addition(rng: Random, edit: Edit) -> Sentence:
    if edit.result is None:
        raise ValueError(f"edit {edit.op!r} has neither subject nor result; sample it with sample_edit")
    mention = mention_some(rng, edit.result)
    return Sentence(text=rng.choice(_ADD).format(a=_noun_phrase(rng, mention)), op=edit.op, mentions=(mention,))


def _describe_change(rng: Random, op: str, reference: str, subject: Figure, result: Figure) -> tuple[str, Mention]:
    if op == "recolour":
        return rng.choice(_RECOLOUR).format(s=reference, c=result.colour), Mention(colour=result.colour)
    if op == "move":
        place = _place_noun(rng, result.place)
        return rng.choice(_MOVE).format(s=reference, p=place), Mention(place=result.place)
    mention = Mention(shape=result.shape, colour=result.colour if result.colour != subject.colour else None)
    return rng.choice(_REPLACE).format(s=reference, a=_noun_phrase(rng, mention)), mention
