"""Traces of the chains and their marginal distributions."""

import numpy as np

from skbnp.plot._estimator import check_estimator, reported_traces
from skbnp.plot._style import class_look, hide_frame, import_pyplot, styled

MAX_BINS = 25
MAX_LEGEND = 8  # chains
UNITS = {"log_joint": " in nats", "log_density": " in nats per row"}


class TraceDisplay:
    """Traces of scalar quantities, one row each, a colour per chain.

    Left the trace of each chain; right, on the same vertical scale, its histogram. Chains that
    have converged overlap in both. Quantities that move on powers of two, as ``prior_scale``
    does, have a logarithmic scale.

    It is recommended to use :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    traces : dict of str to array-like of shape (n_chains, n_draws)
        The quantities to show, by name.
    rhat : dict of str to float, default=None
        R-hat of some of the quantities, shown in the titles.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure that holds the axes.
    axes_ : ndarray of matplotlib Axes of shape (n_quantities, 2) or (n_quantities, 1)
        Trace and histogram of each quantity; the second column is absent where `ax` had no
        room for it.
    lines_ : ndarray of Line2D of shape (n_quantities, n_chains)
        The traces.
    histograms_ : ndarray of StepPatch of shape (n_quantities, n_chains) or None
        The histograms, as densities; per doubling where the scale is logarithmic.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.plot import TraceDisplay
    >>> trace = np.random.default_rng(0).normal(size=(4, 200))
    >>> display = TraceDisplay({"log_joint": trace}).plot()
    """

    def __init__(self, traces, *, rhat=None):
        self.traces = traces
        self.rhat = rhat

    @classmethod
    def from_estimator(cls, estimator, *, names=None, ax=None, **line_kw):
        """Show the traces of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted; its ``posterior_`` holds the traces.
        names : str or list of str, default=None
            The quantities to show; None stands for those whose convergence the estimator
            reports, or else for all.
        ax : matplotlib Axes, array-like of Axes or None, default=None
            As in :meth:`plot`.
        **line_kw : dict
            Passed to ``Axes.plot`` of the traces.

        Returns
        -------
        TraceDisplay
            With its artists as attributes.
        """
        check_estimator(estimator, "posterior_")
        posterior = estimator.posterior_
        if isinstance(names, str):
            names = [names]
        if names is None:
            names = reported_traces(estimator)
        unknown = [name for name in names if name not in posterior.traces]
        if unknown:
            raise ValueError(
                f"names must be among the traces {list(posterior.traces)}, got {unknown}"
            )
        rhat = posterior.rhat() if hasattr(posterior, "rhat") else None
        display = cls({name: posterior.traces[name] for name in names}, rhat=rhat)
        return display.plot(ax=ax, **line_kw)

    @styled
    def plot(self, *, ax=None, **line_kw):
        """Draw the traces.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes or None, default=None
            None makes a new figure. An array of shape (n_quantities, 2) takes traces left and
            histograms right; one of shape (n_quantities,), or a single Axes if there is one
            quantity, takes the traces alone.
        **line_kw : dict
            Passed to ``Axes.plot`` of the traces.

        Returns
        -------
        TraceDisplay
            This object.
        """
        traces = {name: _check_trace(name, trace) for name, trace in self.traces.items()}
        self.axes_ = _arrange_axes(ax, len(traces))
        self.figure_ = self.axes_[0, 0].figure
        self.lines_ = np.array(
            [
                self._plot_trace(axes[0], name, trace, line_kw)
                for axes, (name, trace) in zip(self.axes_, traces.items(), strict=True)
            ]
        )
        self.histograms_ = None
        if self.axes_.shape[1] == 2:
            self.histograms_ = np.array(
                [
                    _plot_histogram(axes[1], trace)
                    for axes, trace in zip(self.axes_, traces.values(), strict=True)
                ]
            )
        self.axes_[-1, 0].set_xlabel("draw")
        if ax is None:  # the rows of our own figure have one scale of draws
            for above in self.axes_[:-1, 0]:
                above.tick_params(labelbottom=False)
        if 1 < len(self.lines_[0]) <= MAX_LEGEND:
            _add_legend(self.axes_[0, 0], len(self.lines_[0]))
        return self

    def _plot_trace(self, ax, name, trace, line_kw):
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        lines = []
        for c, chain in enumerate(trace):
            look = class_look(c)
            style = {"color": look.color, "linestyle": look.linestyle, "label": f"chain {c}"}
            style |= {"linewidth": 0.8, "alpha": 0.85, **normalize_kwargs(line_kw, Line2D)}
            lines += ax.plot(chain, **style)
        ax.set_title(self._title(name, trace), loc="left", fontsize="medium")
        ax.margins(x=0.01)
        _scale_values(ax, trace)
        hide_frame(ax)
        return lines

    def _title(self, name, trace):
        rhat = np.nan if self.rhat is None else self.rhat.get(name, np.nan)
        title = f"{name}{UNITS.get(name, '')}"
        if _is_constant(trace):
            return f"{title}   (constant)"
        return f"{title}   (R-hat {rhat:.3f})" if np.isfinite(rhat) else title


def _check_trace(name, trace):
    trace = np.asarray(trace, dtype=np.float64)
    if trace.ndim != 2 or trace.size == 0:
        raise ValueError(f"trace {name!r} must have shape (n_chains, n_draws), got {trace.shape}")
    return trace


def _arrange_axes(ax, n_rows):
    """Axes of shape (n_rows, 2), or (n_rows, 1) for traces alone."""
    if n_rows == 0:
        raise ValueError("there is no trace to show")
    if ax is None:
        plt = import_pyplot()
        return plt.subplots(
            n_rows,
            2,
            squeeze=False,
            sharey="row",
            figsize=(8.0, 0.4 + 1.6 * n_rows),
            width_ratios=(4, 1),
        )[1]
    ax = np.asarray(ax, dtype=object)
    if ax.shape == (n_rows, 2):
        return ax
    if ax.size == n_rows and ax.ndim < 2:
        return ax.reshape(n_rows, 1)
    raise ValueError(f"ax must have shape ({n_rows}, 2) or ({n_rows},), got {ax.shape}")


def _scale_values(ax, trace):
    """The vertical scale: one value, whole numbers, powers of two, or as it comes."""
    if _is_constant(trace):
        value, room = trace[0, 0], _room(trace[0, 0])
        ax.set_ylim(value - room, value + room)
        ax.set_yticks([value], [f"{value:.6g}"])
    elif _is_counting(trace):
        ax.yaxis.get_major_locator().set_params(integer=True)
    elif _is_doubling(trace):
        ax.set_yscale("log", base=2)


def _plot_histogram(ax, trace):
    """Histograms of the chains over common bins, lying on their side."""
    edges = _bin_edges(trace)
    widths = np.diff(np.log2(edges) if _is_doubling(trace) else edges)
    _scale_values(ax, trace)
    patches = []
    for c, chain in enumerate(trace):
        finite = chain[np.isfinite(chain)]
        density = np.histogram(finite, edges)[0] / (max(len(finite), 1) * widths)
        color, line = class_look(c).color, class_look(c).linestyle
        # Each chain is filled faintly, so that the overlap shows darker.
        patch = ax.stairs(density, edges, orientation="horizontal", fill=True, color=color)
        patch.set(alpha=0.12)
        patches.append(
            ax.stairs(density, edges, orientation="horizontal", color=color, ls=line, linewidth=1.0)
        )
    ax.set_xlim(left=0.0)
    ax.set_xticks([])
    ax.tick_params(left=False, labelleft=False)
    hide_frame(ax)
    ax.spines["bottom"].set_visible(False)
    return patches


def _add_legend(ax, n_chains):
    """One line above the first row."""
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.0,
        ncols=n_chains,
        frameon=False,
        fontsize="small",
        handlelength=1.0,
        columnspacing=1.0,
    )


def _bin_edges(trace):
    """Common bins: a value each for counts and powers of two, else Freedman and Diaconis's."""
    finite = trace[np.isfinite(trace)]
    if len(finite) == 0:
        return np.array([0.0, 1.0])
    low, high = finite.min(), finite.max()
    if low == high:
        return low + 0.1 * _room(low) * np.array([-1.0, 1.0])
    if _is_counting(trace):
        width = np.ceil((high - low + 1.0) / MAX_BINS)
        return np.arange(low - 0.5, high + width, width)
    if _is_doubling(trace):
        return 2.0 ** np.arange(np.log2(low) - 0.5, np.log2(high) + 1.0)
    # As many bins as one chain can fill: the histograms are per chain.
    spread = np.subtract(*np.percentile(finite, [75, 25]))
    width = 2.0 * spread / np.cbrt(trace.shape[1])
    n_bins = MAX_BINS if width <= 0 else np.clip(np.ceil((high - low) / width), 5, MAX_BINS)
    return np.linspace(low, high, int(n_bins) + 1)


def _is_counting(trace):
    finite = trace[np.isfinite(trace)]
    return len(finite) > 0 and bool(np.all(finite == np.round(finite)))


def _is_constant(trace):
    return bool(np.isfinite(trace[0, 0]) and np.all(trace == trace[0, 0]))


def _is_doubling(trace):
    """Powers of two, not all of them whole numbers."""
    finite = trace[np.isfinite(trace)]
    return (
        len(finite) > 0
        and bool(np.all((finite > 0) & (np.frexp(finite)[0] == 0.5)))
        and not _is_counting(trace)
    )


def _room(value):
    """What to show above and below a single value."""
    return max(abs(value), 1.0) * 1e-2
