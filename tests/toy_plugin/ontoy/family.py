"""A model family: a table of word vectors, a linear denoiser and a decoder, in one weight file."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from exporters.conditioning import Branch, Conditioning, ids_port
from exporters.networks import Networks
from exporters.parts import Graph, Model, Part, Reference, ReferenceInputs
from exporters.sources import Subfolders
from profiler.records.plan import Call
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

SUBFOLDERS = Subfolders(networks=("net",), settings=())
WORDS, LENGTH, CHANNELS = ("[PAD]", "[UNK]", "a", "red", "circle"), 4, 2


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(len(WORDS), CHANNELS)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return one vector [1, C, 1, 1] for all words."""
        found: Tensor = self.table(input_ids).mean(1)[:, :, None, None]
        return found


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)

    def forward(self, latents: Tensor, timestep: Tensor, text_states: Tensor) -> Tensor:
        """Predict what to take away."""
        found: Tensor = self.mix(latents + text_states) * timestep
        return found


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.colours = nn.Conv2d(CHANNELS, 3, 1)

    def forward(self, latents: Tensor) -> Tensor:
        """Return an image of 0–255."""
        return torch.sigmoid(self.colours(latents)) * 255


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.denoiser, self.decoder = Words(), Denoiser(), Decoder()


class Euler:
    """The loop's scheduler: even steps from 1 to 0."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.timesteps = torch.linspace(1, 1 / steps, steps)

    def step(self, model_output: Tensor, timestep: Any, sample: Tensor, **options: Any) -> tuple[Tensor]:
        """Take one step."""
        return (sample - model_output / self.steps,)


def save(folder: Any, seed: int = 0) -> None:
    """Write a model of this family."""
    torch.manual_seed(seed)
    (folder / "net").mkdir(parents=True)
    save_file(Net().state_dict(), folder / "net" / "model.safetensors")


def load(networks: Networks, recipe: Recipe) -> Model:
    """Take a model apart."""
    net = Net().eval().requires_grad_(False)
    net.load_state_dict(load_file(networks.folder / "net" / "model.safetensors"))
    latents, image = (CHANNELS, recipe.height, recipe.width), (3, recipe.height, recipe.width)
    sample, states = torch.randn(1, *latents), torch.randn(1, CHANNELS, 1, 1)
    predict = {"latents": sample, "timestep": torch.ones(1), "text_states": states}
    ids = {"input_ids": torch.zeros(1, LENGTH, dtype=torch.int32)}
    parts = [
        Part(name="text_encoder", graphs={"encode": Graph(module=net.words, inputs=ids, outputs=("text_states",))}),
        Part(name="denoiser", graphs={"predict": Graph(module=net.denoiser, inputs=predict, outputs=("prediction",))}),
        Part(
            name="decoder", graphs={"decode": Graph(module=net.decoder, inputs={"latents": sample}, outputs=("image",))}
        ),
    ]
    return Model(
        title="ontoy's own loop",
        parts={part.name: part for part in parts},
        scheduler="toy_euler",
        schedulers=Euler,
        tokenizer=tokenizer(),
        prompt_length=LENGTH,
        prompts={},
        image=image,
        latents=latents,
        tasks=("generate",),
        most_branches=1,
        condition=condition,
        run_reference=partial(run_reference, net),
    )


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of whole words."""
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")


def condition(task: Task, settings: TaskDefaults) -> Conditioning:
    """Encode the prompt once, and let every round see it."""
    encode = Call(
        component="text_encoder",
        function="encode",
        bind={"input_ids": "prompt_ids"},
        emit={"text_states": "text_states"},
        stage="text_encoder",
    )
    branch = Branch("text", 1.0, {"text_states": "text_states"})
    return Conditioning(inputs=(ids_port("prompt_ids", LENGTH),), calls=(encode,), branches=(branch,))


def run_reference(net: Net, inputs: ReferenceInputs) -> Reference:
    """Make one image without any of the product's graphs."""
    words = inputs.settings.prompt.split()[:LENGTH]
    ids = [WORDS.index(word) if word in WORDS else 1 for word in words] + [0] * (LENGTH - len(words))
    scheduler, latents = Euler(inputs.settings.steps), torch.from_numpy(inputs.noise.copy())
    with torch.no_grad():
        states = net.words(torch.tensor([ids]))
        for timestep in scheduler.timesteps:
            (latents,) = scheduler.step(net.denoiser(latents, timestep, states), timestep, latents)
        image = net.decoder(latents).numpy()
    return Reference(image, np.zeros((inputs.settings.steps, *inputs.noise.shape[1:]), np.float32))
