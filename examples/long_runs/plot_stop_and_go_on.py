"""
A run that is killed and goes on
================================

A process that samples with a checkpoint is killed twice. The third run finds the file, goes on,
and ends with exactly the draws of a run that nobody has disturbed.
"""

# %%
# The run that is killed
# ----------------------
# A process of its own, so that it can be killed without warning, as a job scheduler or a flat
# battery does. ``checkpoint_every=0.2`` writes five times a second; minutes are the rule.

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from skbnp import DirichletProcessMixture
from skbnp.plot import style

plt.style.use(style())

warnings.simplefilter("ignore", ConvergenceWarning)
X = load_wine().data[:, :6]
directory = Path(tempfile.mkdtemp())
OPTIONS = dict(n_warmup=500, n_draws=4000, random_state=0, checkpoint_every=0.2)
KILLED_RUN = f"""
from sklearn.datasets import load_wine
from skbnp import DirichletProcessMixture

options = {OPTIONS}
DirichletProcessMixture(checkpoint={str(directory)!r}, **options).fit(load_wine().data[:, :6])
"""


def kill_after_the_next_write():
    """Start the run, wait until the file has been replaced, and kill it half a second later."""
    before = {path: path.stat().st_mtime_ns for path in directory.glob("*.skbnp")}
    process = subprocess.Popen([sys.executable, "-c", KILLED_RUN])
    while before == {path: path.stat().st_mtime_ns for path in directory.glob("*.skbnp")}:
        time.sleep(0.01)
    time.sleep(0.5)
    process.kill()
    process.wait()


for _ in range(2):
    kill_after_the_next_write()

# %%
# The third run, beside one that was left in peace
# ------------------------------------------------
# ``n_sweeps_run`` counts the sweeps that a fit has made itself.

resumed = DirichletProcessMixture(checkpoint=directory, n_jobs=-1, **OPTIONS).fit(X)
whole = DirichletProcessMixture(n_jobs=-1, **OPTIONS).fit(X)
made, of = resumed.posterior_.n_sweeps_run, whole.posterior_.n_sweeps_run
print(f"sweeps made by the third run: {made} of {of}")
print("same traces:", np.array_equal(
    resumed.posterior_.traces["log_joint"], whole.posterior_.traces["log_joint"]
))  # fmt: skip
print("same labels:", np.array_equal(resumed.labels_, whole.labels_))

# %%
# The seam
# --------
# One chain around the sweep at which the third run took over (dashed): the run that was never
# killed, and on top of it what the third run added. Where it took over in the warm-up, before sweep
# 500, all draws are its own.

first = 4500 - made // 4
print("the third run took over at sweep", first)
start = max(500, first - 150)
sweeps = np.arange(start, min(4500, start + 300))
figure, ax = plt.subplots(figsize=(9, 3.5))
log_joint = whole.posterior_.traces["log_joint"][0]
ax.plot(sweeps, log_joint[sweeps - 500], linewidth=5, color="0.8", label="never killed")
added = sweeps[sweeps >= first]
log_joint = resumed.posterior_.traces["log_joint"][0]
ax.plot(added, log_joint[added - 500], linewidth=1, color="C0", label="third run, after two kills")
if first >= start:
    ax.axvline(first, color="C4", linestyle="--", linewidth=1)
ax.set(xlabel="sweep", ylabel="log joint density (nats)")
ax.set_title("First chain", loc="left")
ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)

# %%
# More draws, a file, a figure of merit
# -------------------------------------
# A larger ``n_draws`` goes on where the last run ended. The fitted mixture is saved as data, read
# again, and answers the same bit for bit. Leave-one-out densities need no refit; ``loo`` warns of
# the rows for which they are too optimistic.

resumed.set_params(n_draws=5000).fit(X)
print("sweeps for another 1000 draws of four chains:", resumed.posterior_.n_sweeps_run)
resumed.save(directory / "wine.skbnp")
loaded = DirichletProcessMixture.load(directory / "wine.skbnp")
print("same densities:", np.array_equal(loaded.score_samples(X), resumed.score_samples(X)))
loo = loaded.posterior_.loo(max_draws=400)
print(f"leave-one-out log density per row: {loo.elpd / len(X):.3f} +- {loo.se / len(X):.3f}")

plt.show()
