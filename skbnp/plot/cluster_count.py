"""How many clusters, and how sure."""

import numpy as np

from skbnp.plot._estimator import check_estimator
from skbnp.plot._style import COLORS, hide_frame, import_pyplot, styled


class ClusterCountDisplay:
    """Posterior distribution of the number of clusters, as bars.

    A dash is the share of draws of one chain: where they lie apart the chains do not agree yet,
    and the bars are not to be trusted. A line with points is the prior, where it is given.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    n_clusters : array-like of int of shape (n_chains, n_draws)
        Number of clusters in each draw.
    prior : array-like of shape (n,), default=None
        Prior probability of k clusters at index k - 1.
    noun : str, default="clusters"
        What is counted: "components" of a mixture, before those that overlap are joined.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    ax_ : matplotlib Axes
        The axes.
    bars_ : BarContainer
        Share of the draws with each number of clusters, from the lowest to the highest seen.
    chains_ : list of Line2D
        The same for each chain; empty for a single one.
    prior_ : Line2D or None
        The prior.
    legend_ : Legend or None
        What dashes and line are, where there are any.

    Examples
    --------
    >>> from skbnp.plot import ClusterCountDisplay
    >>> from skbnp.processes import crp
    >>> prior = crp.pmf_blocks(100, concentration=1.0)
    >>> display = ClusterCountDisplay([[3, 3, 4], [3, 3, 3]], prior=prior).plot()
    """

    def __init__(self, n_clusters, *, prior=None, noun="clusters"):
        self.n_clusters = n_clusters
        self.prior = prior
        self.noun = noun

    @classmethod
    def from_estimator(cls, estimator, *, prior=None, ax=None, **bar_kw):
        """Show the number of clusters in the draws of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted; its ``posterior_`` holds the trace "n_clusters", or "n_branches".
        prior : array-like of shape (n,), default=None
            Prior probability of k clusters at index k - 1, such as
            ``skbnp.processes.crp.pmf_blocks(n, concentration)`` for a fixed concentration.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **bar_kw : dict
            Passed to ``Axes.bar``.

        Returns
        -------
        ClusterCountDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "posterior_")
        traces = estimator.posterior_.traces
        name = next((name for name in ("n_clusters", "n_branches") if name in traces), None)
        if name is None:
            raise TypeError(
                "estimator must have a trace 'n_clusters' or 'n_branches', got "
                f"{type(estimator).__name__} with the traces {list(traces)}"
            )
        noun = name.removeprefix("n_")
        if hasattr(estimator, "component_labels_"):
            noun = "components"  # of draws, in which nothing is joined
        return cls(traces[name], prior=prior, noun=noun).plot(ax=ax, **bar_kw)

    @styled
    def plot(self, *, ax=None, **bar_kw):
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **bar_kw : dict
            Passed to ``Axes.bar``.

        Returns
        -------
        ClusterCountDisplay
            This object.
        """
        chains, prior = self._check()
        if ax is None:
            ax = import_pyplot().subplots(figsize=(5.5, 3.5))[1]
        self.ax_, self.figure_ = ax, ax.figure
        support = np.arange(chains.min(), chains.max() + 1)
        counts = [np.bincount(chain - support[0], minlength=len(support)) for chain in chains]
        shares = np.array(counts) / chains.shape[1]
        style = {"width": 0.8, "color": COLORS[0], "alpha": 0.75, "label": "posterior", **bar_kw}
        self.bars_ = ax.bar(support, shares.mean(axis=0), **style)
        self.chains_ = _add_chains(ax, support, shares) if len(chains) > 1 else []
        self.prior_ = None
        if prior is not None:
            shown = _central_part(prior)
            style = {"marker": "o", "markersize": 3.0, "linewidth": 1.0, "color": COLORS[1]}
            self.prior_ = ax.plot(shown, prior[shown - 1], label="prior", **style)[0]
        self.legend_ = None
        if self.chains_ or self.prior_:
            self.legend_ = ax.legend(frameon=False)
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.set_xlabel(f"number of {self.noun}")
        ax.set_ylabel("probability")
        hide_frame(ax)
        return self

    def _check(self):
        chains = np.asarray(self.n_clusters, dtype=np.float64)
        if chains.ndim != 2 or chains.size == 0:
            raise ValueError(f"n_clusters must have shape (n_chains, n_draws), got {chains.shape}")
        if not np.all(np.isfinite(chains) & (chains >= 1) & (chains == np.round(chains))):
            raise ValueError("n_clusters must hold whole numbers >= 1")
        prior = None if self.prior is None else np.asarray(self.prior, dtype=np.float64)
        if prior is not None and not (prior.ndim == 1 and np.all(prior >= 0) and prior.sum() > 0):
            raise ValueError(
                "prior must hold the probabilities of 1, 2, ... clusters, all >= 0, "
                f"got an array of shape {prior.shape}"
            )
        return chains.astype(np.intp), prior


def _add_chains(ax, support, shares):
    """A short dash per chain across the bar."""
    style = {"linestyle": "none", "marker": "_", "markersize": 9.0, "color": COLORS[-1]}
    lines = [ax.plot(support, share, **style)[0] for share in shares]
    lines[0].set_label("each chain")
    return lines


def _central_part(prior):
    """Numbers of clusters that have all but 2 % of the prior, 1 % at either end."""
    below = np.cumsum(prior) / prior.sum()
    low, high = np.searchsorted(below, [0.01, 0.99])
    return np.arange(low, min(high, len(prior) - 1) + 1) + 1
