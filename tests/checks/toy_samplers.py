"""A small sampler in plain Python that keeps the contract, and an estimator around it.

They live in a module so that they pickle.
"""

import numpy as np
from sklearn.base import BaseEstimator

from skbnp.estimators.callbacks import CallbackSupportMixin, with_callbacks
from skbnp.mcmc import run_chains


class ToySampler:
    """Standard normal x by random-walk Metropolis with an adapted step, y given x by Gibbs.

    The joint density is N(x; 0, 1) N(y; x / 2, 1). Each draw also holds an array `path` of
    random length. With ``fail=(chain, sweep)`` the log joint of that chain is NaN after that sweep.
    """

    def __init__(self, bit_generator, chain, start=0.0, fail=None):
        self.bit_generator = bit_generator
        self.random = np.random.Generator(bit_generator)
        self.chain = chain
        self.fail = fail
        self.broken_move = ""
        self.n_swept = 0
        self.step = 5.0
        self.value = np.array([start + self.random.normal(), 0.0])
        self.counts = np.zeros(2, dtype=int)

    def sweep(self):
        x = self.value[0]
        proposal = x + self.step * self.random.normal()
        y = self.value[1]
        gain = 0.5 * (x**2 - proposal**2 + (y - x / 2) ** 2 - (y - proposal / 2) ** 2)
        accepted = np.log(self.random.random()) < gain
        self.counts += (accepted, 1)
        if accepted:
            self.value[0] = proposal
        self.value[1] = self.value[0] / 2 + self.random.normal()
        if self.fail == (self.chain, self.n_swept):
            self.value[1] = np.nan
            self.broken_move = "gibbs"
        self.n_swept += 1

    def adapt(self, step):
        assert step == self.n_swept - 1
        self.step *= np.exp((self.counts[0] / self.counts[1] - 0.4) / (1 + step))

    def log_joint(self):
        x, y = self.value
        return -0.5 * (x**2 + (y - x / 2) ** 2) - np.log(2 * np.pi)

    def scalars(self):
        return {"x": self.value[0], "y": self.value[1], "step": self.step}

    def draw(self):
        n_steps = 1 + int(abs(self.value[0]) * 2)
        return {"value": self.value.copy(), "path": np.linspace(0, self.value[0], n_steps)}

    def get_state(self):
        return {
            "value": self.value.copy(),
            "counts": self.counts.copy(),
            "step": self.step,
            "n_swept": self.n_swept,
            "bit_generator": self.bit_generator.state,
        }

    def set_state(self, state):
        self.value = np.array(state["value"])
        self.counts = np.array(state["counts"])
        self.step = state["step"]
        self.n_swept = state["n_swept"]
        self.bit_generator.state = state["bit_generator"]

    def acceptance(self):
        return {"walk": tuple(self.counts)}


class ToyDensity:
    """Log density of three fixed numbers, each normal about the present y."""

    n_rows = 3

    def __call__(self, sampler):
        return self.of_draw(sampler.draw())

    @staticmethod
    def of_draw(draw):
        """The same of a draw."""
        return -0.5 * (np.array([-1.0, 0.0, 2.0]) - draw["value"][1]) ** 2


class CarelessSampler(ToySampler):
    """Hands out views of its own state."""

    def draw(self):
        return {"value": self.value[:]}

    def acceptance(self):
        return {"walk": self.counts}


class ToyEstimator(CallbackSupportMixin, BaseEstimator):
    """Fits nothing: runs chains with callbacks as an estimator does."""

    def __init__(self, n_chains=2, n_warmup=3, n_draws=4, thin=2, n_jobs=None):
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X=None, y=None):
        context = self._init_callback_context(max_subtasks=self.n_chains)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        self.posterior_ = run_chains(
            ToySampler,
            n_chains=self.n_chains,
            n_warmup=self.n_warmup,
            n_draws=self.n_draws,
            thin=self.thin,
            seed=0,
            n_jobs=self.n_jobs,
            callbacks=(self, context),
        )
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def score(self, X, y=None):
        return float(self.posterior_.traces["log_joint"].mean())


class TaskLog:
    """Callback that writes a line per hook to a file, from whichever process."""

    def __init__(self, path):
        self.path = str(path)

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self._write("begin", context)

    def on_fit_task_end(self, estimator, context):
        self._write("end", context)

    def _write(self, event, context):
        names = []
        while context is not None:
            names.insert(0, f"{context.task_name}{context.task_id}")
            context = context.parent
        with open(self.path, "a") as file:
            file.write(f"{event} {'/'.join(names)}\n")

    def lines(self):
        with open(self.path) as file:
            return file.read().splitlines()


class StopAt(TaskLog):
    """Says stop at the end of the given sweeps, a dict chain -> sweep."""

    def __init__(self, path, sweeps):
        super().__init__(path)
        self.sweeps = sweeps

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        return (
            context.task_name == "sweep"
            and self.sweeps.get(context.parent.task_id) == context.task_id
        )


class Watcher:
    """Callback that keeps what it is told of the progress."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        pass

    def on_progress(self, estimator, context, progress):
        self.told.append(progress)
