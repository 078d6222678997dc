"""``skbnp inpaint``: what it takes, what it writes and what it says."""

import re

import numpy as np
import pytest
from matplotlib import image

from skbnp.command_line import pictures

SHORT = ["--side", "4", "--rows", "150", "--warmup", "5", "--draws", "2", "--chains", "1"]
SHORT += ["--jobs", "1"]


@pytest.fixture
def fill(skbnp, tmp_path):
    """Run the command; the picture that it has written, in whole grey levels, and what it says."""

    def run(*arguments, output="out.png"):
        ended = skbnp("inpaint", *arguments, "--output", output, *SHORT)
        assert ended.code == 0, ended
        return pictures.read(tmp_path / output)[0], ended

    return run


def stripes(n_channels):
    """A picture of smooth stripes and where four of five pixels are missing."""
    top, left = np.indices((24, 30))
    truth = 0.5 + 0.4 * np.sin((top + 2 * left)[:, :, np.newaxis] / 5.0 + np.arange(n_channels))
    missing = np.random.default_rng(0).random(top.shape) < 0.8
    return np.round(255 * truth) / 255, missing


def rgb(picture):
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture


@pytest.mark.parametrize("n_channels", [1, 3])
def test_mask(fill, tmp_path, n_channels):
    truth, missing = stripes(n_channels)
    image.imsave(tmp_path / "truth.png", rgb(truth))
    image.imsave(tmp_path / "in.png", rgb(np.where(missing[:, :, np.newaxis], 0.2, truth)))
    image.imsave(tmp_path / "mask.png", rgb(missing[:, :, np.newaxis].astype(float)))
    filled, ended = fill("in.png", "--mask", "mask.png", "--truth", "truth.png")
    assert filled.shape == truth.shape
    np.testing.assert_allclose(filled[~missing], truth[~missing], atol=1e-6)
    assert np.sqrt(np.mean((filled - truth)[missing] ** 2)) < 0.15  # the stripes' own is 0.28
    assert f"{missing.mean():.1%} missing" in ended.out and "PSNR" in ended.out
    assert ended.err == "" and ended.out.endswith("wrote out.png\n")


def test_transparent_pixels_are_missing(fill, tmp_path):
    truth, missing = stripes(3)
    image.imsave(tmp_path / "in.png", np.dstack([truth, ~missing]))
    filled, _ = fill("in.png")
    np.testing.assert_allclose(filled[~missing], truth[~missing], atol=1e-6)
    assert np.all(np.isfinite(filled))


@pytest.mark.slow
def test_arrays_as_a_process(process, tmp_path):
    truth, missing = stripes(1)
    np.save(tmp_path / "in.npy", np.where(missing, np.nan, truth[:, :, 0]))
    ended = process("inpaint", "in.npy", "--quiet", *SHORT)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    filled = np.load(tmp_path / "in_filled.npy")
    assert np.array_equal(filled[~missing], truth[~missing, 0])
    assert np.all(np.isfinite(filled))


def test_name_of_the_filled_picture(skbnp, tmp_path):
    truth, missing = stripes(3)
    image.imsave(tmp_path / "photo.jpg", truth)
    image.imsave(tmp_path / "mask.png", np.repeat(missing[:, :, np.newaxis], 3, axis=2) * 1.0)
    ended = skbnp("inpaint", "photo.jpg", "--mask", "mask.png", *SHORT)
    assert ended.code == 0 and "wrote photo_filled.png" in ended.out
    assert image.imread(tmp_path / "photo_filled.png").shape[:2] == (24, 30)


def test_what_it_refuses(refused, tmp_path):
    truth, missing = stripes(3)
    image.imsave(tmp_path / "whole.png", truth)
    image.imsave(tmp_path / "black.png", np.zeros((24, 30, 3)))
    image.imsave(tmp_path / "white.png", np.ones((24, 30, 3)))
    image.imsave(tmp_path / "small.png", np.ones((3, 3, 3)))
    image.imsave(tmp_path / "mask.png", rgb(missing[:, :, np.newaxis].astype(float)))
    np.save(tmp_path / "row.npy", np.ones(5))
    np.save(tmp_path / "text.npy", np.full((9, 9), "a"))
    (tmp_path / "text.png").write_text("no picture")
    holed = ["whole.png", "--mask", "mask.png"]
    for arguments, message in [
        (["whole.png"], "no pixel of whole.png is missing"),
        (["whole.png", "--mask", "black.png"], "no pixel of whole.png is missing"),
        (["whole.png", "--mask", "white.png"], "all pixels of whole.png are missing"),
        (["whole.png", "--mask", "small.png"], "small.png must have the size of whole.png, 30 x"),
        (["whole.png", "--mask", "none.png"], "cannot read none.png: there is no such file"),
        (["small.png", "--mask", "small.png"], "all pixels"),
        (["row.npy"], "no grey or colour picture"),
        (["text.npy"], "no grey or colour picture"),
        (["text.png"], "cannot read text.png"),
        (["none.png"], "cannot read none.png"),
        ([*holed, "--output", "out.nothing"], "--output must end in .npy or as pictures do"),
        ([*holed, "--output", "nowhere/out.png"], "there is no folder nowhere"),
        ([*holed, "--output", "mask.png"], "--output mask.png would overwrite the input mask.png"),
        ([*holed, "--truth", "small.png"], "small.png must have the size"),
        ([*holed, "--side", "25"], "--side must be from 2 to the sides of whole.png, 30 x 24"),
        ([*holed, "--side", "1"], "--side: must be >= 2, got 1"),
        ([*holed, "--step", "0"], "--step: must be >= 1, got 0"),
        ([*holed, "--step", "11"], "--step must be from 1 to --side, got 11"),
    ]:
        assert re.search(message, refused("inpaint", *arguments)), message


def test_truth_of_other_colours(refused, tmp_path):
    truth, missing = stripes(3)
    image.imsave(tmp_path / "grey.png", rgb(truth[:, :, :1]))
    image.imsave(tmp_path / "truth.png", truth)
    image.imsave(tmp_path / "mask.png", rgb(missing[:, :, np.newaxis].astype(float)))
    said = refused("inpaint", "grey.png", "--mask", "mask.png", "--truth", "truth.png")
    assert "truth.png must be grey.png without holes" in said
