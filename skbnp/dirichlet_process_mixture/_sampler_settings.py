"""How the mixture is sampled."""

from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class MixtureSampler(SamplerSettings):
    """How :class:`~skbnp.DirichletProcessMixture` is sampled.

    "parallel" visits the rows cell by cell of 16,384, wherever they are. Its splits and merges go
    through all rows at once: after the warm-up those of four sweeps are made in one, as many as
    concern different clusters, and `split_merge` says how the 2,000 rows at hand are divided first,
    between whose two sides all other rows choose.

    Examples
    --------
    >>> from skbnp import DirichletProcessMixture
    >>> from skbnp.samplers import MixtureSampler
    >>> mixture = DirichletProcessMixture(sampler=MixtureSampler(n_split_merge=20))
    """

    algorithm: str = parameter(
        default="auto",
        kind='{"auto", "collapsed", "parallel", "gibbs"}',
        rules=[StrOptions({"auto", "collapsed", "parallel", "gibbs"})],
        text="""
        How a sweep draws the labels. "collapsed": row after row, everything else integrated out;
        mixes best per sweep. "parallel": all rows at once given weights and parameters of the
        clusters, and some 2,000 rows as in "collapsed"; for many rows, on all cores. "gibbs": all
        rows at once given weights and parameters of all components; only where `n_components` is
        a number, at most 10,000. "auto" is "collapsed" up to 20,000 rows, "parallel" above.
        """,
    )
    n_split_merge: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 0, 10**9, closed="both"), StrOptions({"auto"})],
        text="""
        Split-merge proposals per sweep; 0 for none. "auto" is the larger of 4 and half the
        number of clusters, followed during warm-up and then frozen.
        """,
    )
    split_merge: str = parameter(
        default="sequential",
        kind='{"sequential", "restricted_gibbs"}',
        rules=[StrOptions({"sequential", "restricted_gibbs"})],
        text="""
        How a split is proposed: rows allocated one after the other (Dahl and Newcomb 2022), or by
        restricted Gibbs sampling from a random start (Jain and Neal 2004).
        """,
    )
