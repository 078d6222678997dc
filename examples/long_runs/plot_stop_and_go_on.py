"""
A run that is killed and goes on
================================

A process that samples with a checkpoint is killed twice. The third run finds the file, goes on,
and ends with exactly the draws of a run that nobody has disturbed.
"""

# %%
# The run that is killed
# ----------------------
# A process of its own, which a callback kills without warning once the chains have made so many
# sweeps, as a job scheduler or a flat battery does. ``checkpoint_every=0.2`` writes up to five
# times a second; minutes are the rule.

import subprocess
import sys
import tempfile
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
OPTIONS = dict(n_warmup=300, n_draws=1000, random_state=0, checkpoint_every=0.2)
KILLED_RUN = f"""
import os, signal, sys
from sklearn.datasets import load_wine
from skbnp import DirichletProcessMixture
from skbnp.progress import ProgressLog

class Killer(ProgressLog):
    def on_progress(self, estimator, context, progress):
        if progress.n_swept >= int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)

options = {OPTIONS}
mixture = DirichletProcessMixture(checkpoint={str(directory)!r}, **options)
mixture.set_callbacks(Killer(every=3600)).fit(load_wine().data[:, :6])
"""

for n_sweeps in (500, 900):
    run = subprocess.run([sys.executable, "-c", KILLED_RUN, str(n_sweeps)])
    print("killed by signal", -run.returncode)

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
# killed, and on top of it what the third run added.

first = 1300 - made // 4
print("the third run took over at sweep", first)
start = max(300, first - 150)
sweeps = np.arange(start, min(1300, start + 300))
figure, ax = plt.subplots(figsize=(9, 3.5))
log_joint = whole.posterior_.traces["log_joint"][0]
ax.plot(sweeps, log_joint[sweeps - 300], linewidth=5, color="0.8", label="never killed")
added = sweeps[sweeps >= first]
log_joint = resumed.posterior_.traces["log_joint"][0]
ax.plot(added, log_joint[added - 300], linewidth=1, color="C0", label="third run, after two kills")
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

resumed.set_params(n_draws=1250).fit(X)
print("sweeps for another 250 draws of four chains:", resumed.posterior_.n_sweeps_run)
resumed.save(directory / "wine.skbnp")
loaded = DirichletProcessMixture.load(directory / "wine.skbnp")
print("same densities:", np.array_equal(loaded.score_samples(X), resumed.score_samples(X)))
loo = loaded.posterior_.loo(max_draws=400)
print(f"leave-one-out log density per row: {loo.elpd / len(X):.3f} +- {loo.se / len(X):.3f}")

plt.show()
