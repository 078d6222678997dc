"""bnpy's mixture, for the Python that has it: python _bnpy.py TRAIN.npy NEW.npy RESULT.npz SEED.

bnpy 0.1.7 wants older NumPy, SciPy and scikit-learn than skbnp, hence a process of its own. It
installs on Python 3.11 without its own pinned requirements, beside NumPy < 1.24, SciPy < 1.11,
scikit-learn < 1.3, pandas < 2, matplotlib, joblib, munkres, numexpr, psutil and six, once the .c
files of its source distribution have been deleted so that Cython < 3 makes them anew.

Memoised variational inference from ten random rows with birth, merge and delete moves, one run of
at most 50 passes, its defaults otherwise.
"""

import inspect
import sys
import tempfile
import time

import numpy as np
from _densities import log_joint, student_predictive
from scipy.special import logsumexp

# bnpy 0.1.7 calls what Python 3.11 has no more.
inspect.getargspec = lambda function: inspect.getfullargspec(function)[:4]

import bnpy  # noqa: E402


def fit(X, seed, folder):
    """The fitted model and the labels of the rows."""
    data = bnpy.data.XData(X)
    model, _ = bnpy.run(
        data,
        "DPMixtureModel",
        "Gauss",
        "memoVB",
        K=10,
        initname="randexamples",
        moves="birth,merge,delete",
        nLap=50,
        nBatch=1,
        printEvery=-1,
        output_path=folder,
        taskid=1,
        algseed=seed,
        dataorderseed=seed,
    )
    return model, model.calc_local_params(data)["resp"].argmax(axis=1)


def predictive(model):
    """Student t components, the weights at their posterior means."""
    weight, post = model.allocModel.get_active_comp_probs(), model.obsModel.Post
    return student_predictive(weight, post.m, post.B, post.kappa, post.nu)


def main():
    """Fit, predict, write."""
    train, new, path, seed = sys.argv[1:]
    X, new = np.load(train), np.load(new)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        model, label = fit(X, int(seed), folder)
    seconds = time.process_time() - start
    joint = log_joint(new, *predictive(model))
    np.savez(
        path,
        label=label,
        label_new=joint.argmax(axis=1),
        log_density=logsumexp(joint, axis=1),
        seconds=seconds,
    )


if __name__ == "__main__":
    main()
