"""Where a fit stands, shown while it runs: callbacks of scikit-learn's kind.

``estimator.set_callbacks(ProgressBar())`` shows a bar, ``ProgressLog()`` writes log lines.
"""

from skbnp.mcmc.progress import Progress
from skbnp.progress._bar import ProgressBar
from skbnp.progress._log import ProgressLog

__all__ = ["Progress", "ProgressBar", "ProgressLog"]
