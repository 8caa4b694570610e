"""What every family that reads images promises. A new one is held to it by one more line in SMALL."""

import pytest
import torch
import torch.nn.functional as F

from dragoman import images, models
from dragoman.images.batches import ImageBatch
from dragoman.models import FAMILIES
from dragoman.models.cnn import CnnClassifierConfig, CnnRegressorConfig, CnnSegmenterConfig
from dragoman.models.mlp import MlpClassifierConfig, MlpRegressorConfig
from dragoman.models.vit import (
    VitClassifierConfig,
    VitRegressorConfig,
    VitSegmenterConfig,
    VitVectorsConfig,
    cut,
    paste,
)
from dragoman.modules.attention import watching
from dragoman.modules.convolution import ResidualConvolution, channels_together
from dragoman.runs.weights import load_weights, weights_of
from dragoman.training.image_objectives import MeasuringLoss, NamingLoss, PixelLoss
from dragoman.training.loop import train
from dragoman.training.optimizers import make_optimizer

SIZE = (8, 12)
CLASSES, NUMBERS = {"classes": ("a", "b", "c")}, {"numbers": ("x", "y")}
COMMON = {"size": SIZE, "channels": 3, "dropout": 0.0}
MLP = {**COMMON, "width": 24}
CNN = {**COMMON, "width": 6, "hidden": 16}
VIT = {**COMMON, "patch": 4, "width": 16, "heads": 2, "layers": 2, "hidden": 24}
SMALL = {
    "mlp-classes": MlpClassifierConfig(**MLP, **CLASSES),
    "mlp-numbers": MlpRegressorConfig(**MLP, **NUMBERS, layers=1),
    "cnn-classes": CnnClassifierConfig(**CNN, **CLASSES),
    "cnn-no-norm": CnnClassifierConfig(**CNN, **CLASSES, batch_norm=False, layers=2, stages=3),
    "cnn-numbers": CnnRegressorConfig(**CNN, **NUMBERS),
    "cnn-pixels": CnnSegmenterConfig(**CNN, **CLASSES, stages=3),
    "vit-classes": VitClassifierConfig(**VIT, **CLASSES),
    "vit-numbers": VitRegressorConfig(**{**VIT, "patch": 2}, **NUMBERS),
    "vit-pixels": VitSegmenterConfig(**VIT, **CLASSES),
}
HEADS = ("classify", "regress", "segment")
IMAGES = torch.randn(4, 3, *SIZE, generator=torch.Generator().manual_seed(1))


@pytest.fixture(params=SMALL.values(), ids=SMALL)
def model(request):
    return models.build(request.param).eval()


@pytest.fixture
def exact(model):
    """Away from where training starts: biases of zero, and norms that have counted nothing, would hide mistakes."""
    for tensor in weights_of(model).values():
        if tensor.is_floating_point():
            tensor += 0.3 * torch.rand_like(tensor)
    return model.double()


def every_family():
    return {(task, name): one for task in HEADS for name, one in FAMILIES[task].items() if one.reads == "images"}


def test_every_family_is_tested(model):
    assert {type(config) for config in SMALL.values()} == {one.config for one in every_family().values()}
    assert {name for _, name in every_family()} == set(images.FAMILIES)
    assert models.from_dict(models.to_dict(model.config)) == model.config
    assert all(field.description for field in type(model.config).model_fields.values())
    assert model.config.products_per_token() > 0
    assert "images of 12×8 in colour" in model.config.shape()


@pytest.mark.parametrize("family", every_family().values(), ids=["-".join(name) for name in every_family()])
def test_presets_can_be_built(family):
    assert set(family.presets) == {"tiny", "small", "base"}
    told = {name: value for name, value in {**CLASSES, **NUMBERS}.items() if name in family.config.model_fields}
    for preset in family.presets.values():
        family.config(size=(28, 28), **told, **preset)


def test_an_answer_for_every_image(model):
    task, _ = models.task_and_family_of(model.config)
    shape = {"classify": (4, 3), "regress": (4, 2), "segment": (4, 3, *SIZE)}[task]
    assert model(IMAGES).shape == shape


def test_an_image_alone_equals_itself_among_others(exact):
    together = exact(IMAGES.double())
    for row in range(4):
        torch.testing.assert_close(exact(IMAGES[row : row + 1].double())[0], together[row], atol=1e-10, rtol=1e-12)


def test_the_same_twice(model):
    assert torch.equal(model(IMAGES), model(IMAGES))


def test_every_pixel_is_looked_at_and_no_other_image(exact):
    image = IMAGES.double().requires_grad_()
    (gradient,) = torch.autograd.grad(exact(image)[1].square().sum(), image)
    assert (gradient[1].abs().amax(dim=0) > 0).float().mean() > 0.9  # a largest of four hides three
    assert gradient[[0, 2, 3]].abs().max() == 0


def test_it_learns_where_the_light_is(model):
    """A bright square stands left, in the middle or right."""
    task, _ = models.task_and_family_of(model.config)
    random = torch.Generator().manual_seed(0)
    place, wanted_pixels = torch.arange(96) % 3, torch.zeros(96, *SIZE, dtype=torch.long)
    pictures = 0.5 * torch.randn(96, 3, *SIZE, generator=random)
    for row, where in enumerate(place.tolist()):
        pictures[row, :, 2:6, 4 * where : 4 * where + 4] += 2
        wanted_pixels[row, 2:6, 4 * where : 4 * where + 4] = 1 + where % 2
    numbers = torch.stack([place.float(), -place.float()], dim=1)
    wanted, loss = {
        "classify": (place, NamingLoss()),
        "regress": (numbers, MeasuringLoss((1.0, -1.0), (0.8, 0.8))),
        "segment": (wanted_pixels, PixelLoss()),
    }[task]
    batch = ImageBatch(pictures, wanted)
    optimizer = make_optimizer("adam", model, 1e-2)
    losses = [step.nats_per_token for step in train(model, [[batch]] * 40, loss, optimizer, rate=lambda _: 1e-2)]
    assert losses[-1] < 0.35 * losses[0]


def test_weights_and_what_norms_have_counted_are_carried(model, tmp_path):
    model.train()(IMAGES + 3)
    other = models.build(model.config)
    load_weights(other, weights_of(model), tmp_path)
    assert torch.equal(other.eval()(IMAGES), model.eval()(IMAGES))
    norms = [name for name in weights_of(model) if name.endswith("running_mean")]
    assert bool(norms) == getattr(model.config, "batch_norm", False)
    assert all(weights_of(model)[name].abs().max() > 0 for name in norms)


def test_two_half_batches_give_the_gradient_of_one():
    """Not with batch norm: there every image changes the others, in training."""
    for name in ("mlp-classes", "cnn-no-norm", "vit-classes"):
        model, wanted = models.build(SMALL[name]).double(), torch.tensor([0, 2, 1, 1])

        def gradient(*halves, model=model):
            model.zero_grad()
            for half, right in halves:
                NamingLoss(0.1)(model, ImageBatch(half.double(), right)).nats.backward()
            return [p.grad.clone() for p in model.parameters()]

        whole = gradient((IMAGES, wanted))
        for a, b in zip(whole, gradient((IMAGES[:1], wanted[:1]), (IMAGES[1:], wanted[1:])), strict=True):
            torch.testing.assert_close(a, b, atol=1e-9, rtol=0)


# ── ViT ───────────────────────────────────────────────────────────────────────────────────


def test_patches_are_a_strided_convolution():
    """Lecture 002: a matrix for the pixels of a patch is a convolution whose kernel and stride are the patch."""
    reader = models.build(SMALL["vit-classes"]).reader.double()
    weight, bias = reader.to_vector.weight, reader.to_vector.bias
    convolved = F.conv2d(IMAGES.double(), weight.unflatten(1, (3, 4, 4)), bias, stride=4)  # (B D down across)
    torch.testing.assert_close(reader.to_vector(cut(IMAGES.double(), 4)), convolved.flatten(2).mT, atol=1e-12, rtol=0)


def test_paste_undoes_cut():
    for patch, down in ((4, 2), (2, 4), (1, 8)):
        assert torch.equal(paste(cut(IMAGES, patch), patch, down), IMAGES)


def test_without_positions_the_order_of_patches_only_orders_the_states():
    """The class token's state does not change at all, and the others change places with their patches."""
    reader = models.build(SMALL["vit-classes"]).reader.double().eval()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    shuffled = paste(cut(IMAGES.double(), 4)[:, order], 4, 2)
    with_positions = reader(shuffled)[:, 0] - reader(IMAGES.double())[:, 0]
    assert with_positions.abs().max() > 1e-4
    reader.positions.table.weight.data.zero_()
    states, moved = reader(IMAGES.double()), reader(shuffled)
    torch.testing.assert_close(moved[:, 0], states[:, 0], atol=1e-13, rtol=0)
    torch.testing.assert_close(moved[:, 1:], states[:, 1:][:, order], atol=1e-13, rtol=0)


def test_attention_is_a_distribution_over_class_token_and_patches():
    model = models.build(SMALL["vit-classes"]).eval()
    with watching(model) as seen:
        watched = model(IMAGES)
    torch.testing.assert_close(watched, model(IMAGES))
    assert len(seen) == 2
    for [looked] in seen.values():
        weights = looked.weights
        assert weights.shape == (4, 2, 7, 7)
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, 2, 7))


def test_a_reader_alone_gives_a_state_for_each_patch():
    config = VitVectorsConfig(**VIT)
    assert models.build(config)(IMAGES).shape == (4, 7, 16)
    assert models.task_and_family_of(config) == ("embed", "vit")


WRONG = {
    "patches": (VitClassifierConfig, {**VIT, "patch": 5}, "12×8 cannot be cut into patches of 5×5"),
    "heads": (VitClassifierConfig, {**VIT, "heads": 3}, "width 16 cannot be split into 3 equal heads"),
    "stages": (CnnClassifierConfig, {**CNN, "stages": 4}, "12×8 cannot be halved 4 times"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_sizes_that_cannot_be(wrong):
    config, values, words = WRONG[wrong]
    with pytest.raises(ValueError, match=words):
        config(**values, **CLASSES)


# ── CNN ───────────────────────────────────────────────────────────────────────────────────


def test_a_residual_layer_is_what_it_changes_and_what_it_was_given():
    """Y = g(conv(X)) + X; with other channels, a 1×1 convolution takes X there."""
    x = torch.randn(2, 5, 6, 7)
    same, other = ResidualConvolution(5, 5, batch_norm=False), ResidualConvolution(5, 3, batch_norm=False)
    torch.testing.assert_close(same(x), same.convolution(x) + x)
    assert other.project.kernel_size == (1, 1)
    torch.testing.assert_close(other(x), other.convolution(x) + other.project(x))
    for parameter in same.parameters():
        parameter.data.zero_()
    assert torch.equal(same(x), x)


def test_a_thing_is_found_wherever_it_stands():
    """A convolution of a moved image is the moved convolution, but for the edges."""
    layer = ResidualConvolution(1, 4, batch_norm=True).eval()
    image = torch.zeros(1, 1, 16, 16)
    image[0, 0, 5:8, 5:8] = torch.randn(3, 3)
    moved = image.roll((2, 3), dims=(2, 3))
    torch.testing.assert_close(layer(moved)[..., 1:-1, 1:-1], layer(image).roll((2, 3), (2, 3))[..., 1:-1, 1:-1])


def test_the_layout_in_memory_changes_no_number():
    for channels in (1, 3):
        x = torch.randn(2, channels, 5, 6)
        assert torch.equal(channels_together(x), x)
        assert channels_together(x).stride(1) == 1


def test_a_segmenter_takes_odd_sizes():
    config = CnnSegmenterConfig(**{**CNN, "size": (9, 13)}, **CLASSES, stages=3)
    assert models.build(config).eval()(torch.randn(2, 3, 9, 13)).shape == (2, 3, 9, 13)
