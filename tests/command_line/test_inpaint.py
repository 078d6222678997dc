"""The script that fills pictures: what it takes, what it writes and what it says."""

import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from checks.scripts import load

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SHORT = ["--side", "4", "--rows", "150", "--warmup", "5", "--draws", "2", "--chains", "1"]


@pytest.fixture
def script(monkeypatch):
    return load(EXAMPLES / "inpaint_image.py", monkeypatch)


@pytest.fixture
def run(script, monkeypatch, tmp_path):
    """The script on files of a folder; what it has written, in whole grey levels."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["inpaint_image.py", *SHORT, "--jobs", "1", *arguments])
        script.main()
        return script.read(Path(arguments[1]))[0]

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
def test_mask(run, tmp_path, capsys, n_channels):
    truth, missing = stripes(n_channels)
    image.imsave(tmp_path / "truth.png", rgb(truth))
    image.imsave(tmp_path / "in.png", rgb(np.where(missing[:, :, np.newaxis], 0.2, truth)))
    image.imsave(tmp_path / "mask.png", rgb(missing[:, :, np.newaxis].astype(float)))
    filled = run("in.png", "out.png", "--mask", "mask.png", "--truth", "truth.png")
    assert filled.shape == truth.shape
    np.testing.assert_allclose(filled[~missing], truth[~missing], atol=1e-6)
    assert np.sqrt(np.mean((filled - truth)[missing] ** 2)) < 0.15  # the stripes' own is 0.28
    printed = capsys.readouterr().out
    assert f"{missing.mean():.1%} missing" in printed and "PSNR" in printed


def test_transparent_pixels_are_missing(run, tmp_path):
    truth, missing = stripes(3)
    image.imsave(tmp_path / "in.png", np.dstack([truth, ~missing]))
    filled = run("in.png", "out.png")
    np.testing.assert_allclose(filled[~missing], truth[~missing], atol=1e-6)
    assert np.all(np.isfinite(filled))


def test_arrays(run, tmp_path):
    truth, missing = stripes(1)
    np.save(tmp_path / "in.npy", np.where(missing, np.nan, truth[:, :, 0]))
    filled = run("in.npy", "out.npy")
    assert np.array_equal(filled[~missing], truth[~missing])
    assert np.all(np.isfinite(filled))


def test_what_it_refuses(run, tmp_path):
    truth, missing = stripes(3)
    image.imsave(tmp_path / "whole.png", truth)
    image.imsave(tmp_path / "black.png", np.zeros((24, 30, 3)))
    image.imsave(tmp_path / "white.png", np.ones((24, 30, 3)))
    image.imsave(tmp_path / "small.png", np.ones((3, 3, 3)))
    np.save(tmp_path / "row.npy", np.ones(5))
    np.save(tmp_path / "text.npy", np.full((9, 9), "a"))
    (tmp_path / "text.png").write_text("no picture")
    for arguments, message in [
        (["whole.png", "out.png"], "no pixel of whole.png is missing"),
        (["whole.png", "out.png", "--mask", "black.png"], "no pixel of whole.png is missing"),
        (["whole.png", "out.png", "--mask", "white.png"], "all pixels of whole.png are missing"),
        (["whole.png", "out.png", "--mask", "small.png"], "small.png must have the size"),
        (["small.png", "out.png", "--mask", "small.png"], "all pixels"),
        (["row.npy", "out.png"], "no grey or colour picture"),
        (["text.npy", "out.png"], "no grey or colour picture"),
        (["text.png", "out.png"], "cannot read text.png"),
        (["none.png", "out.png"], "cannot read none.png"),
    ]:
        with pytest.raises(SystemExit, match=message):
            run(*arguments)
    image.imsave(tmp_path / "mask.png", rgb(missing[:, :, np.newaxis].astype(float)))
    for out in ("out.nothing", "nowhere/out.png"):
        with pytest.raises(SystemExit):
            run("in.png", out)
    for option, value in [("--side", "25"), ("--step", "0")]:
        with pytest.raises(SystemExit, match=option):
            run("whole.png", "out.png", "--mask", "mask.png", option, value)
