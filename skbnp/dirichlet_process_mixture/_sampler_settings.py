"""How the mixture is sampled."""

from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class MixtureSampler(SamplerSettings):
    """How :class:`~skbnp.DirichletProcessMixture` is sampled.

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
        clusters, cell by cell of 16,384 rows, and some 2,000 rows as in "collapsed"; for many rows,
        on all cores or wherever the rows are. "gibbs": all
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
        number of clusters, followed during warm-up and then frozen. After the warm-up "parallel"
        makes those of four sweeps in one, as many as concern different clusters.
        """,
    )
    split_merge: str = parameter(
        default="sequential",
        kind='{"sequential", "restricted_gibbs"}',
        rules=[StrOptions({"sequential", "restricted_gibbs"})],
        text="""
        How a split is proposed: rows allocated one after the other (Dahl and Newcomb 2022), or by
        restricted Gibbs sampling from a random start (Jain and Neal 2004). For "parallel": how the
        rows at hand are divided first, whose two sides then all other rows choose between.
        """,
    )
