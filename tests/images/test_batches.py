"""Batches of images: a function of (seed, epoch, k), moved as they should be, and of mean 0 and deviation 1."""

import numpy as np
import pytest
import torch

from dragoman.errors import DataError
from dragoman.images.batches import ImageOrder, Levels, Moves, move, shift
from dragoman.images.index import ImageIndex, IndexWriter, fingerprint, part_of
from dragoman.images.pixels import Form

FORM = Form(3, 6, 5)
RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (23, *FORM[:3]), dtype=np.uint8)


def write(folder, answers, dtype="int64", shape=()):
    with IndexWriter(folder, FORM, dtype, shape) as writer:
        for pixels, answer in zip(PICTURES, answers, strict=True):
            writer.add(pixels, answer)
    return writer.finish()


@pytest.fixture
def index(tmp_path):
    return write(tmp_path / "train", range(23))


def levels_of(index):
    return Levels(mean=index.mean, deviation=index.deviation)


def test_an_index_gives_back_what_was_written(index, tmp_path):
    again = ImageIndex(tmp_path / "train")
    assert len(again) == len(index) == 23
    assert (again.pixels == PICTURES).all()
    assert again.answers.tolist() == list(range(23))
    assert isinstance(again.pixels, np.memmap)
    np.testing.assert_allclose(again.mean, PICTURES.mean(axis=(0, 2, 3)) / 255, atol=1e-6)
    np.testing.assert_allclose(again.deviation, PICTURES.std(axis=(0, 2, 3)) / 255, atol=1e-6)


def test_a_damaged_index_is_said(tmp_path):
    write(tmp_path / "train", range(23))
    whole = (tmp_path / "train" / "pixels.bin").read_bytes()
    (tmp_path / "train" / "pixels.bin").write_bytes(whole[:-1])
    with pytest.raises(DataError, match="are damaged; begin anew with --fresh"):
        ImageIndex(tmp_path / "train")
    (tmp_path / "train" / "index.json").unlink()
    with pytest.raises(DataError, match="damaged"):
        ImageIndex(tmp_path / "train")


def test_an_epoch_shows_every_image_once_and_each_epoch_in_another_order(index):
    order = ImageOrder(index, 5, 1, levels_of(index))
    assert len(order) == 5
    epochs = [[order.batch(epoch, k).wanted.tolist() for k in range(5)] for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(row for batch in batches for row in batch) == list(range(23))
    assert epochs[0] != epochs[1]


def test_a_batch_is_a_function_of_seed_epoch_and_place(index):
    def batch(seed, epoch, k):
        return ImageOrder(index, 8, seed, levels_of(index), Moves(2, True)).batch(epoch, k)

    for place in ((1, 0, 0), (1, 3, 2), (2, 0, 1)):
        a, b = batch(*place), batch(*place)
        assert torch.equal(a.images, b.images)
        assert torch.equal(a.wanted, b.wanted)
    assert not torch.equal(batch(1, 0, 0).images, batch(2, 0, 0).images)


def test_training_images_have_mean_zero_and_deviation_one(index):
    images = levels_of(index).normalise(PICTURES)
    torch.testing.assert_close(images.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(images.std(dim=(0, 2, 3), correction=0), torch.ones(3), atol=1e-4, rtol=0)


def test_images_that_never_change_are_no_division_by_zero(tmp_path):
    with IndexWriter(tmp_path / "even", Form(1, 2, 2), "int64", ()) as writer:
        writer.add(np.full((1, 2, 2), 7, np.uint8), 0)
    assert writer.finish().deviation == (1.0,)


def test_a_shift_moves_rows_down_and_columns_right():
    found = shift(PICTURES[:2], np.array([1, 0]), np.array([0, -2]))
    assert (found[0, :, 1:] == PICTURES[0, :, :-1]).all()
    assert (found[0, :, 0] == PICTURES[0, :, 0]).all()  # what comes in is the edge again
    assert (found[1, :, :, :-2] == PICTURES[1, :, :, 2:]).all()


def test_every_move_is_met_and_none_goes_further():
    many = np.repeat(PICTURES[:1], 400, axis=0)
    moved = move(many, Moves(shift=1, flip=True), np.random.default_rng(0))
    assert len(np.unique(moved.reshape(400, -1), axis=0)) == 3 * 3 * 2
    assert move(many, Moves(), np.random.default_rng(0)) is many


def test_a_mask_moves_with_its_image(tmp_path):
    masks = PICTURES[:, 0] // 64
    index = write(tmp_path / "masks", masks, "uint8", (6, 5))
    levels = Levels(mean=(0.0,) * 3, deviation=(1.0,) * 3)
    batch = ImageOrder(index, 23, 0, levels, Moves(2, True)).batch(0, 0)
    assert torch.equal((255 * batch.images[:, 0]).round().long() // 64, batch.wanted)


def test_equal_images_fall_into_the_same_part_and_the_parts_are_as_large_as_asked():
    marks = [fingerprint(image) for image in RANDOM.integers(0, 256, (2000, 1, 3, 3), dtype=np.uint8)]
    assert fingerprint(PICTURES[3].copy()) == fingerprint(PICTURES[3])
    share = sum(part_of(mark) < 0.1 for mark in marks) / len(marks)
    assert 0.08 < share < 0.12
