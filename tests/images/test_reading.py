"""Images come in as they are shown, in whichever way they are kept; what does not fit is said in one sentence."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.images.answers import ClassAnswers, MaskAnswers, NumberAnswers
from dragoman.images.corpus import classes_in, find_images, find_shown, holds_images, mask_values
from dragoman.images.mask_names import mask_names
from dragoman.images.pixels import Form, Size, fit, measure, read_image, read_mask, read_size, save_mask

GREY, COLOUR = Form(1, 6, 8), Form(3, 6, 8)
RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (5, 6, 8), dtype=np.uint8)
LABELS = np.array([0, 1, 0, 2, 1], dtype=np.uint8)


def write_idx(path, array, kind=0x08):
    start = bytes([0, 0, kind, array.ndim]) + b"".join(struct.pack(">I", length) for length in array.shape)
    with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as file:
        file.write(start + array.tobytes())
    return path


def write_classes(folder, sizes=((8, 6),) * 4):
    for number, size in enumerate(sizes):
        path = folder / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(PICTURES[number]).resize(size).save(path)
    return folder


# ── one image ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", ["png", "jpg", "jpeg", "PNG"])
def test_grey_files_are_one_channel(ending, tmp_path):
    even = np.full((6, 8), 77, dtype=np.uint8)
    Image.fromarray(even).save(tmp_path / f"a.{ending}")
    assert measure(tmp_path / f"a.{ending}") == GREY
    assert (read_image(tmp_path / f"a.{ending}", GREY) == 77).all()
    assert read_image(tmp_path / f"a.{ending}", COLOUR).shape == (3, 6, 8)


def test_a_camera_that_was_held_sideways(tmp_path):
    """EXIF orientation 6: what is stored must be turned by a quarter to be shown."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PICTURES[0]).save(tmp_path / "a.png", exif=exif)
    assert measure(tmp_path / "a.png").size == Size(8, 6)
    assert (read_image(tmp_path / "a.png", Form(1, 8, 6))[0] == np.rot90(PICTURES[0], -1)).all()


def test_sixteen_bits_keep_their_upper_half(tmp_path):
    deep = PICTURES[0].astype(np.uint16) << 8 | 0x7F
    Image.fromarray(deep).save(tmp_path / "a.png")
    assert measure(tmp_path / "a.png") == GREY
    assert (read_image(tmp_path / "a.png", GREY)[0] == PICTURES[0]).all()


def test_a_palette_is_what_its_colours_are(tmp_path):
    image = Image.frombytes("P", (8, 6), bytes([0, 1] * 24))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.save(tmp_path / "a.png")
    found = read_image(tmp_path / "a.png", COLOUR)
    assert measure(tmp_path / "a.png") == COLOUR
    assert found[:, 0, 0].tolist() == [255, 0, 0]
    assert found[:, 0, 1].tolist() == [0, 0, 255]
    image.putpalette([9, 9, 9, 200, 200, 200])
    image.save(tmp_path / "grey.png")
    assert measure(tmp_path / "grey.png") == GREY


def test_what_is_transparent_stands_on_white(tmp_path):
    Image.new("RGBA", (8, 6), (10, 20, 30, 0)).save(tmp_path / "a.png")
    assert (read_image(tmp_path / "a.png", COLOUR) == 255).all()
    one_bit = Image.new("1", (8, 6), 1)
    one_bit.save(tmp_path / "b.png")
    assert (read_image(tmp_path / "b.png", GREY) == 255).all()


def test_an_image_that_fits_is_not_touched():
    colour = RANDOM.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    assert (fit(colour, COLOUR) == colour.transpose(2, 0, 1)).all()
    assert fit(colour, Form(3, 3, 4)).shape == (3, 3, 4)


def test_a_mask_keeps_its_numbers(tmp_path):
    mask = RANDOM.integers(0, 256, (6, 8), dtype=np.uint8)
    save_mask(mask, tmp_path / "m.png")
    assert (read_mask(tmp_path / "m.png") == mask).all()
    Image.new("RGB", (8, 6)).save(tmp_path / "rgb.png")
    with pytest.raises(DataError, match=r"the mask .*rgb.png is in colour"):
        read_mask(tmp_path / "rgb.png")


def test_sizes_are_written_width_first():
    assert read_size("640x480") == Size(480, 640)
    assert str(Size(480, 640)) == "640x480"
    for wrong in ("640", "x", "0x5", "axb", "-1x5"):
        with pytest.raises(UsageError, match="such as 64x48"):
            read_size(wrong)


# ── corpora ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_files_find_each_other(ending, tmp_path):
    images = write_idx(tmp_path / f"t-images-idx3-ubyte{ending}", PICTURES)
    labels = write_idx(tmp_path / f"t-labels-idx1-ubyte{ending}", LABELS)
    for given in ([images], [images, labels], [labels, images]):
        corpus = find_images(given)
        assert corpus.form() == GREY
        assert corpus.labels() == ["0", "1", "0", "2", "1"]
        assert (np.stack(list(corpus.pixels(GREY)))[:, 0] == PICTURES).all()
    assert corpus.task() == "classify"
    assert next(corpus.names()) == f"{images.name} 1"
    assert next(iter(corpus.pixels(Form(3, 3, 4)))).shape == (3, 3, 4)


def test_idx_files_of_other_names_are_given_together(tmp_path):
    images, labels = write_idx(tmp_path / "a.idx3", PICTURES), write_idx(tmp_path / "b.idx1", LABELS)
    assert find_images([images, labels]).labels() == ["0", "1", "0", "2", "1"]
    with pytest.raises(DataError, match="has no labels beside it"):
        find_images([images])
    assert find_images([images], alone=True).form() == GREY


LAYOUTS = {
    "grey": (PICTURES, GREY),
    "channels last": (PICTURES[..., None].repeat(3, axis=3), COLOUR),
    "channels first": (PICTURES[:, None].repeat(3, axis=1), COLOUR),
    "to 1": (PICTURES / 255, GREY),
    "to 255": (PICTURES.astype(np.float32), GREY),
    "16 bits": (PICTURES.astype(np.uint16) * 257, GREY),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["images", "x"])
def test_npz_in_every_layout(layout, name, tmp_path):
    array, form = LAYOUTS[layout]
    np.savez(tmp_path / "a.npz", **{name: array, "y": LABELS})
    corpus = find_images([tmp_path / "a.npz"])
    assert corpus.form() == form
    for found, picture in zip(corpus.pixels(form), PICTURES, strict=True):
        assert (found == picture).all()
    assert corpus.labels() == ["0", "1", "0", "2", "1"]


def test_npz_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.images.npz.BLOCK", 100)  # two images at a time
    np.savez_compressed(tmp_path / "a.npz", images=PICTURES, labels=np.array(["b", "a", "b", "a", "c"]))
    corpus = find_images([tmp_path / "a.npz"])
    assert len(list(corpus.parts[0].blocks("images"))) == 3
    assert (np.stack(list(corpus.pixels(GREY)))[:, 0] == PICTURES).all()
    assert classes_in(corpus, corpus.labels()) == ("a", "b", "c")


def test_npz_with_names_numbers_and_masks(tmp_path):
    masks = (PICTURES > 128).astype(np.int64) * 7
    np.savez(tmp_path / "a.npz", images=PICTURES, labels=LABELS, names=["cat", "dog", "cow"])
    np.savez(tmp_path / "b.npz", images=PICTURES, numbers=np.arange(10.0).reshape(5, 2), names=["x", "y"])
    np.savez(tmp_path / "c.npz", images=PICTURES, masks=masks)
    assert find_images([tmp_path / "a.npz"]).labels() == ["cat", "dog", "cat", "cow", "dog"]
    names, rows = find_images([tmp_path / "b.npz"]).numbers()
    assert (names, rows.tolist()[1]) == (("x", "y"), [2.0, 3.0])
    corpus = find_images([tmp_path / "c.npz"])
    assert corpus.task() == "segment"
    assert mask_values(corpus, GREY.size) == [0, 7]
    answers = MaskAnswers.find(corpus, GREY)
    assert answers.names == ("0", "7")
    assert (np.stack(list(answers.of(corpus, GREY))) == (masks > 0)).all()


def test_a_folder_for_each_class(tmp_path):
    corpus = find_images([write_classes(tmp_path / "pets")])
    (tmp_path / "pets" / "dog" / "notes.txt").write_text("not an image")
    (tmp_path / "pets" / ".hidden").mkdir()
    assert corpus.name == "pets"
    assert corpus.task() == "classify"
    assert corpus.labels() == ["cat", "cat", "dog", "dog"]
    assert corpus.form() == GREY
    assert list(ClassAnswers.find(corpus, GREY).of(corpus, GREY)) == [0, 0, 1, 1]
    Image.new("RGB", (8, 6)).save(tmp_path / "pets" / "dog" / "z.png")
    assert find_images([tmp_path / "pets"]).form() == COLOUR


def test_a_folder_with_a_table_of_numbers(tmp_path):
    write_classes(tmp_path)
    (tmp_path / "numbers.csv").write_text("file,angle,speed\ndog/0.png,1.5,2\ncat/1.png,-3,4e1\n")
    corpus = find_images([tmp_path])
    assert corpus.task() == "regress"
    names, rows = corpus.numbers()
    assert names == ("angle", "speed")
    assert rows.tolist() == [[1.5, 2.0], [-3.0, 40.0]]
    assert len(list(corpus.pixels(GREY))) == 2
    (tmp_path / "numbers.csv").write_text("dog/0.png,1.5\n")
    assert find_images([tmp_path]).numbers()[0] == ("number",)


def test_a_folder_with_masks(tmp_path):
    for part in ("images", "masks"):
        (tmp_path / part).mkdir()
    Image.fromarray(PICTURES[0]).save(tmp_path / "images" / "a.jpg")
    save_mask((PICTURES[0] > 99).astype(np.uint8), tmp_path / "masks" / "a.png")
    (tmp_path / "classes.txt").write_text("sky\nground\n")
    corpus = find_images([tmp_path])
    assert corpus.task() == "segment"
    assert MaskAnswers.find(corpus, GREY).names == ("sky", "ground")
    assert [mask.shape for mask in corpus.masks(Size(3, 4))] == [(3, 4)]


def test_several_corpora_are_one(tmp_path):
    np.savez(tmp_path / "a.npz", images=PICTURES, labels=LABELS)
    write_classes(tmp_path / "pets")
    corpus = find_images([tmp_path / "a.npz", tmp_path / "pets"])
    assert len(corpus.labels()) == len(list(corpus.pixels(GREY))) == len(list(corpus.names())) == 9
    assert corpus.name == "pets-and-1-more"


def test_images_are_told_from_texts_by_their_names(tmp_path):
    for name in ("a.npz", "t10k-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte", "a.png", str(tmp_path)):
        assert holds_images([name]), name
    for name in ("train.de", "a.tsv", "idx.txt", "labels.jsonl"):
        assert not holds_images([name]), name


def test_what_is_shown_may_be_files_and_corpora(tmp_path):
    write_classes(tmp_path)
    np.savez(tmp_path / "a.npz", x=PICTURES)
    shown = find_shown([tmp_path / "dog" / "0.png", tmp_path / "a.npz", tmp_path / "cat"])
    assert [len(list(part.pixels(GREY))) for part in shown] == [1, 5, 2]
    assert next(iter(shown[0].names())).endswith("0.png")


def test_masks_are_told_apart_by_as_much_of_the_path_as_that_takes():
    paths = ["a/0.jpg", "b/0.jpg", "b/1.JPG", "b/0.png", "c/a/2.png", "d/a/2.png", "x.npz 1", "y/x.npz 1"]
    names = ["a-0", "b-0.jpg", "1", "b-0.png", "c-a-2", "d-a-2", "x.npz 1", "y-x.npz 1"]
    assert mask_names([Path(path) for path in paths]) == [f"{name}.png" for name in names]
    assert mask_names([Path("a.png"), Path("A.jpg")]) == ["a.png.png", "A.jpg.png"]  # one name to some file systems
    assert len(set(mask_names([Path("/b/0.jpg")] * 3))) == 3


# ── mistakes ──────────────────────────────────────────────────────────────────────────────


def damaged_image(folder):
    write_classes(folder / "pets")
    whole = (folder / "pets" / "dog" / "0.png").read_bytes()
    (folder / "pets" / "dog" / "0.png").write_bytes(whole[:-40])
    return read(folder / "pets")


def no_image(folder):
    write_classes(folder / "pets")
    (folder / "pets" / "dog" / "0.png").write_text("hello")
    return read(folder / "pets")


def empty_folder(folder):
    (folder / "pets" / "dog").mkdir(parents=True)
    return read(folder / "pets")


def mixed_sizes(folder):
    return read(write_classes(folder / "pets", sizes=((8, 6), (8, 6), (9, 6), (8, 6))))


def one_class(folder):
    np.savez(folder / "a.npz", images=PICTURES, labels=np.zeros(5, int))
    return read(folder / "a.npz")


def few_labels(folder):
    write_idx(folder / "a-labels-idx1-ubyte", LABELS[:3])
    return read(write_idx(folder / "a-images-idx3-ubyte", PICTURES))


def few_labels_in_npz(folder):
    np.savez(folder / "a.npz", images=PICTURES, labels=LABELS[:3])
    return read(folder / "a.npz")


def wrong_magic(folder):
    (folder / "a-images-idx3-ubyte").write_bytes(b"\x89PNG1234")
    return read(folder / "a-images-idx3-ubyte")


def floats_in_idx(folder):
    return read(write_idx(folder / "a-images-idx3-ubyte", PICTURES.astype(np.float32), kind=0x0D))


def cut_off_idx(folder):
    write_idx(folder / "a-labels-idx1-ubyte", LABELS)
    whole = write_idx(folder / "a-images-idx3-ubyte", PICTURES).read_bytes()
    (folder / "a-images-idx3-ubyte").write_bytes(whole[:-7])
    return read(folder / "a-images-idx3-ubyte")


def labels_alone(folder):
    return read(write_idx(folder / "a-labels-idx1-ubyte", LABELS))


def no_labels(folder):
    return read(write_idx(folder / "a-images-idx3-ubyte", PICTURES))


def no_arrays(folder):
    np.savez(folder / "a.npz", pictures=PICTURES)
    return read(folder / "a.npz")


def no_zip(folder):
    (folder / "a.npz").write_bytes(b"PK nothing")
    return read(folder / "a.npz")


def objects(folder):
    np.savez(folder / "a.npz", images=np.array([PICTURES[0], "x"], dtype=object), labels=[0, 1])
    return read(folder / "a.npz")


def flat_images(folder):
    np.savez(folder / "a.npz", images=PICTURES.reshape(5, -1), labels=LABELS)
    return read(folder / "a.npz")


def beyond_bytes(folder):
    np.savez(folder / "a.npz", images=PICTURES - 300.0, labels=LABELS)
    return read(folder / "a.npz")


def nan_pixels(folder):
    images = np.zeros((5, 6, 8), np.float32)
    images[3, 2, 1] = np.nan
    np.savez(folder / "a.npz", images=images, labels=LABELS)
    return read(folder / "a.npz")


def infinite_pixels(folder):
    np.savez(folder / "a.npz", images=np.full((5, 6, 8), -np.inf), labels=LABELS)
    return read(folder / "a.npz")


def no_numbers_in_npz(folder):
    np.savez(folder / "a.npz", images=PICTURES, labels=LABELS, angles=LABELS)
    return NumberAnswers.find(find_images([folder / "a.npz"]), GREY)


def no_masks_in_npz(folder):
    np.savez(folder / "a.npz", x=PICTURES, regions=PICTURES)
    return MaskAnswers.find(find_images([folder / "a.npz"]), GREY)


def empty_class(folder):
    write_classes(folder / "pets")
    (folder / "pets" / "fish").mkdir()
    (folder / "pets" / "fish" / "0.webp").write_bytes(b"RIFF")
    return read(folder / "pets")


def lost_mask(folder):
    for part in ("images", "masks"):
        (folder / part).mkdir()
    Image.fromarray(PICTURES[0]).save(folder / "images" / "a.png")
    return MaskAnswers.find(find_images([folder]), GREY)


def small_mask(folder):
    for part, size in (("images", (8, 6)), ("masks", (4, 6))):
        (folder / part).mkdir()
        Image.new("L", size).save(folder / part / "a.png")
    return MaskAnswers.find(find_images([folder]), GREY)


def even_masks(folder):
    np.savez(folder / "a.npz", images=PICTURES, masks=np.zeros_like(PICTURES))
    return MaskAnswers.find(find_images([folder / "a.npz"]), GREY)


def no_number(folder):
    write_classes(folder)
    (folder / "numbers.csv").write_text("file,angle\ndog/0.png,left\n")
    return read(folder)


def lost_file(folder):
    write_classes(folder)
    (folder / "numbers.tsv").write_text("dog/7.png\t1\n")
    return read(folder)


def uneven_rows(folder):
    write_classes(folder)
    (folder / "numbers.csv").write_text("dog/0.png,1\ncat/1.png,2,3\n")
    return read(folder)


def not_finite(folder):
    np.savez(folder / "a.npz", images=PICTURES, numbers=np.full(5, np.inf))
    return NumberAnswers.find(find_images([folder / "a.npz"]), GREY)


def unknown_label(folder):
    np.savez(folder / "a.npz", images=PICTURES, labels=LABELS)
    return list(ClassAnswers(("0", "1")).of(find_images([folder / "a.npz"]), GREY))


def read(path):
    """All that training asks of a corpus."""
    corpus = find_images([path])
    form, task = corpus.form(), corpus.task()
    kinds = {"regress": NumberAnswers, "segment": MaskAnswers}
    answers = kinds.get(task, ClassAnswers).find(corpus, form)
    return list(zip(corpus.pixels(form), answers.of(corpus, form), strict=True))


MISTAKES = {
    damaged_image: ("E-IMG-01", "0.png cannot be read (", "truncated"),
    no_image: ("E-IMG-01", "0.png cannot be read (it is no PNG or JPEG); mend or remove it"),
    empty_folder: ("E-IMG-02", "pets holds no image; put them into a folder for each class, pets/<class>/….png"),
    mixed_sizes: ("E-IMG-03", "1.png is 8x6 and ", "2.png is 9x6", "--set images.size=8x6 resizes them"),
    one_class: ("E-IMG-07", "all 5 images of a have the label '0'"),
    few_labels: ("E-IMG-04", "holds 5 images and ", " 3 labels; they must pair up"),
    few_labels_in_npz: ("E-IMG-04", "holds 5 images and 3 labels; they must pair up"),
    wrong_magic: ("E-IMG-05", "begins with 0x89504e47; an idx file begins with 0x00000803"),
    floats_in_idx: ("E-IMG-05", "begins with 0x00000d03"),
    cut_off_idx: ("E-IMG-05", "promises 240 values and holds 233; fetch it again"),
    labels_alone: ("E-IMG-08", "holds labels alone; give the file of its images, too"),
    no_labels: ("E-IMG-08", "has no labels beside it (a-labels-idx1-ubyte)"),
    no_arrays: ("E-IMG-06", "holds no array `images` or `x`, but pictures"),
    no_zip: ("E-IMG-06", "cannot be read"),
    objects: ("E-IMG-06", "holds Python objects, which are not opened"),
    flat_images: ("E-IMG-06", "has images of shape (5, 48)"),
    beyond_bytes: ("E-IMG-06", "with values from -3"),
    nan_pixels: ("E-IMG-06", "a.npz has pixels that are NaN or infinite; mend or remove those images"),
    infinite_pixels: ("E-IMG-06", "a.npz has pixels that are NaN or infinite"),
    no_numbers_in_npz: ("E-IMG-06", "no array `numbers`, but angles, images, labels;", "savez(images=…, numbers=…)"),
    no_masks_in_npz: ("E-IMG-06", "no array `masks`, but regions, x;", "savez(images=…, masks=…)"),
    empty_class: (
        "E-IMG-02",
        "fish holds no image (.png, .jpg, .jpeg) and stands beside",
        "put some into it, or remove",
    ),
    lost_mask: ("E-IMG-09", "a.png is missing"),
    small_mask: ("E-IMG-09", "is 8x6 and its mask", "4x6; they must be of one size"),
    even_masks: ("E-IMG-07", "all pixels of a have the label [0]"),
    no_number: ("E-IMG-10", "row 2 has 'left' where a number should be"),
    lost_file: ("E-DATA-04", "7.png does not exist"),
    uneven_rows: ("E-IMG-10", "row 2 has 3 cells and the first one 2"),
    not_finite: ("E-IMG-10", "has numbers that are none"),
    unknown_label: ("E-IMG-12", "a.npz 4 has the label '2', which the model does not know (known: 0, 1)"),
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_one_sentence(mistake, tmp_path):
    error, *words = MISTAKES[mistake]
    with pytest.raises(DragomanError) as refusal:
        mistake(tmp_path)
    assert refusal.value.id == error, refusal.value.sentence
    assert refusal.value.exit_code == 3
    assert all(word in refusal.value.sentence for word in words), refusal.value.sentence
    assert "\n" not in refusal.value.sentence


def test_a_size_that_is_asked_for_mends_mixed_ones(tmp_path):
    corpus = find_images([write_classes(tmp_path, sizes=((8, 6), (9, 6), (5, 5), (80, 60)))])
    assert corpus.form(Size(6, 8)) == GREY
    assert {image.shape for image in corpus.pixels(GREY)} == {(1, 6, 8)}
