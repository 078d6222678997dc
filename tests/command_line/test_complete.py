"""``skbnp complete``: sets of images in, completed ones out."""

import re

import numpy as np
import pytest
from matplotlib import image

SHORT = ["--units", "4", "--warmup", "80", "--draws", "4", "--chains", "1", "--jobs", "1"]


@pytest.fixture
def complete(skbnp, tmp_path):
    """Run the command; the arrays that it has written, and what it says."""

    def run(*arguments, output="out"):
        ended = skbnp("complete", *arguments, "--output", output, *SHORT)
        assert ended.code == 0, ended
        with np.load(tmp_path / output / "completed.npz") as file:
            return file["images"], file["std"], ended.out

    return run


def stripes(n=40, shape=(8, 6)):
    """Images of bright or dark upper and lower halves that agree, in whole grey levels."""
    random = np.random.default_rng(0)
    bright = random.random((n, 1, 1)) < 0.5
    images = np.where(bright, 0.8, 0.2) + 0.05 * random.normal(size=(n, *shape))
    return np.round(255 * np.clip(images, 0, 1)) / 255


def lower_half(shape=(8, 6)):
    missing = np.zeros(shape, dtype=bool)
    missing[4:] = True
    return missing


def rgb(picture):
    return np.repeat(picture[:, :, np.newaxis], 3, axis=2)


def test_folder_with_a_mask_and_whole_images_to_learn_from(complete, tmp_path):
    images, missing = stripes(), lower_half()
    for folder in ("in", "truth", "whole"):
        (tmp_path / folder).mkdir()
    for i in range(5):
        image.imsave(tmp_path / "truth" / f"face{i}.png", rgb(images[i]))
        image.imsave(tmp_path / "in" / f"face{i}.png", rgb(np.where(missing, 0.0, images[i])))
    for i in range(5, 40):
        image.imsave(tmp_path / "whole" / f"{i}.png", rgb(images[i]))
    image.imsave(tmp_path / "mask.png", rgb(missing.astype(float)))
    filled, std, printed = complete(
        *("in", "--mask", "mask.png", "--learn", "whole", "--truth", "truth")
    )
    assert filled.shape == std.shape == (5, 8, 6)
    np.testing.assert_allclose(filled[:, ~missing], images[:5][:, ~missing], atol=1e-6)
    assert np.all(std[:, ~missing] == 0) and np.all(std[:, missing] > 0)
    assert np.sqrt(np.mean((filled - images[:5])[:, missing] ** 2)) < 0.15  # of means 0.3
    assert "5 grey images of 6 x 8 pixels; 50.0% missing" in printed
    assert "5 nearest images" in printed and "within one std" in printed
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "completed.npz",
        "completion.png",
        *(f"face{i}.png" for i in range(5)),
    ]
    np.testing.assert_allclose(
        image.imread(tmp_path / "out" / "face3.png")[:, :, 0], filled[3], atol=1.5 / 255
    )


def test_array_with_a_value_for_missing_pixels(complete, tmp_path):
    random = np.random.default_rng(0)
    images = np.round(16 * stripes()).astype(np.int16)
    holed = np.where(random.random(images.shape) < 0.3, -1, images)
    np.savez(tmp_path / "in.npz", digits=holed, labels=np.zeros(40))
    filled, _, _ = complete("in.npz", "--key", "digits", "--missing", "-1")
    assert np.array_equal(filled[holed >= 0], images[holed >= 0])
    # The units' range is a tenth wider than that of the pixels.
    assert filled.min() >= images.min() - 1 and filled.max() <= images.max() + 1
    assert np.sqrt(np.mean((filled - images)[holed < 0] ** 2)) < 3.0  # of means 4.8
    assert (tmp_path / "out" / "00.png").exists() and (tmp_path / "out" / "39.png").exists()


def test_colours_and_transparent_pixels(complete, tmp_path):
    images, random = stripes(12), np.random.default_rng(1)
    colour = np.stack([images, 1 - images, 0.5 * images], axis=-1)
    missing = random.random(images.shape) < 0.2
    (tmp_path / "in").mkdir()
    for i in range(12):
        image.imsave(tmp_path / "in" / f"{i:02d}.png", np.dstack([colour[i], ~missing[i]]))
    filled, _, _ = complete("in")
    assert filled.shape == (12, 8, 6, 3) and np.all(np.isfinite(filled))
    np.testing.assert_allclose(filled[~missing], colour[~missing], atol=1 / 250)


@pytest.mark.slow
def test_as_a_process(process, tmp_path):
    images = stripes(8)
    images[0, 4:] = np.nan
    np.save(tmp_path / "in.npy", images)
    ended = process("complete", "in.npy", *SHORT, "--warmup", "10", "--draws", "2", "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    with np.load(tmp_path / "in_completed" / "completed.npz") as file:
        assert np.array_equal(file["images"][~np.isnan(images)], images[~np.isnan(images)])
        assert np.isfinite(file["images"]).all() and (file["std"][np.isnan(images)] > 0).all()


def test_what_it_refuses(refused, tmp_path):
    images = stripes(4)
    for folder in ("whole", "sizes", "empty", "masks"):
        (tmp_path / folder).mkdir()
    for i in range(4):
        image.imsave(tmp_path / "whole" / f"{i}.png", rgb(images[i]))
        image.imsave(tmp_path / "sizes" / f"{i}.png", rgb(images[i, i:]))
    image.imsave(tmp_path / "white.png", np.ones((8, 6, 3)))
    image.imsave(tmp_path / "small.png", np.ones((3, 3, 3)))
    image.imsave(tmp_path / "half.png", rgb(lower_half().astype(float)))
    np.save(tmp_path / "flat.npy", np.ones((5, 4)))
    np.save(tmp_path / "stack.npy", images[:, :5])
    np.save(tmp_path / "nothing.npy", np.full((4, 5, 6), np.nan))
    np.savez(tmp_path / "two.npz", a=images, b=images)
    (tmp_path / "text.npy").write_text("no array")
    for arguments, message in [
        (["whole"], "no pixel of whole is missing"),
        (["sizes"], "pictures must be of one size"),
        (["empty"], "there are no pictures in empty"),
        (["whole", "--mask", "white.png"], "48 pixels are missing in all images"),
        (["whole", "--mask", "half.png"], "24 pixels are missing in all images"),
        (["whole", "--mask", "small.png"], "small.png must have the size"),
        (["whole", "--mask", "masks"], "masks must hold one mask 0, and has 0"),
        (["whole", "--mask", "half.png", "--learn", "stack.npy"], "of the size of IN"),
        (["whole", "--mask", "half.png", "--truth", "stack.npy"], "of the size of IN"),
        (["flat.npy"], "no .n, height, width."),
        (["nothing.npy"], "all pixels of nothing.npy are missing"),
        (["two.npz"], "two.npz holds a, b: choose one by --key"),
        (["two.npz", "--key", "c"], "two.npz holds a, b, not c"),
        (["text.npy"], "cannot read text.npy"),
        (["none.npy"], "cannot read none.npy: there is no such file"),
        (["whole", "--mask", "none.png"], "cannot read none.png: there is no such file"),
        (["whole", "--output", "whole"], "--output whole would overwrite the pictures there"),
        (["whole", "--output", "a/b"], "--output a/b: there is no folder a"),
        (["whole", "--units", "0"], "--units: must be >= 1, got 0"),
        (["whole", "--output", "white.png"], "--output must be a folder, and white.png is a file"),
    ]:
        assert re.search(message, refused("complete", *arguments)), message
