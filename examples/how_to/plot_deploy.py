"""
Deploy a fitted model
=====================

A fit may take minutes; its answers are needed for years, elsewhere, and many times a day. Save it
as data, load it in another process, and bound the time of an answer.
"""

# %%
# Save
# ----
# ``save`` writes plain arrays and JSON, no pickle: loading executes nothing that is in the file.
# All that predictions need is there: the draws, the names of the columns, the scales.

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbnp import BNPImputer, DirichletProcessMixture

wine = load_wine(as_frame=True).data
train, new = wine.iloc[::2], wine.iloc[1::2]
mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(train)

directory = Path(tempfile.mkdtemp())
mixture.save(directory / "wine.skbnp")
print(f"{(directory / 'wine.skbnp').stat().st_size / 1e6:.1f} MB")

# %%
# Load, in another process
# ------------------------
# The answers are the same to the last bit. A table with other columns, or the same in another
# order, is refused.

new.to_csv(directory / "new.csv", index=False)
SERVICE = """
import sys
import pandas as pd
from skbnp import DirichletProcessMixture

mixture = DirichletProcessMixture.load(sys.argv[1] + "/wine.skbnp")
rows = pd.read_csv(sys.argv[1] + "/new.csv")
print(*mixture.predict(rows), sep=",")
"""
answer = subprocess.run(
    [sys.executable, "-c", SERVICE, str(directory)], capture_output=True, text=True, check=True
)
there = np.array(answer.stdout.split(","), int)
print("same clusters:", np.array_equal(there, mixture.predict(new)))

# %%

try:
    mixture.predict(new[new.columns[::-1]])
except ValueError as error:
    print(str(error).splitlines()[0])

# %%
# Time of an answer
# -----------------
# It grows with the draws that are averaged. Fewer of them are faster and a little noisier; choose
# by the score on rows kept aside. ``thin`` of the posterior, or ``n_draws``, makes files smaller.

for predict_draws in (100, 25, 5):
    mixture.set_params(predict_draws=predict_draws)
    start = time.process_time()
    score = mixture.score_samples(new).mean()
    each = (time.process_time() - start) / len(new)
    print(f"{predict_draws:3} draws: {1e6 * each:5.0f} microseconds a row, score {score:.3f}")

# %%
# Rows that do not belong
# -----------------------
# A model in use meets rows unlike any that it was fitted to. ``novelty_proba`` is the probability
# that a row opens a cluster of its own; a log density far below those of the training rows says the
# same of the whole row.

strange = new.iloc[:2].copy()
strange["alcohol"] *= 2
print("novelty of two new rows:  ", mixture.novelty_proba(new.iloc[:2]).round(3))
print("the same, alcohol doubled:", mixture.novelty_proba(strange).round(3))

# %%
# Pipelines
# ---------
# A whole pipeline is pickled, as in all of scikit-learn, with the usual care: load pickles from
# people you trust, under the same versions. ``python -m skbnp.show_versions`` prints these.

pipeline = make_pipeline(StandardScaler(), BNPImputer(random_state=0))
holed = train.mask(np.random.default_rng(0).random(train.shape) < 0.1)
print("cells left missing:", np.isnan(pipeline.fit_transform(holed)).sum())

# %%
# Predictions are safe to call from several threads. Files of an older version can be read by a
# newer one; :doc:`/user_guide/long_runs` has the details.
