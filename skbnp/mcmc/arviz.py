"""Conversion of a posterior to ArviZ."""

import numpy as np


def to_arviz(posterior, log_likelihood=False):
    """Convert the traces of a posterior.

    Parameters
    ----------
    posterior : Posterior
    log_likelihood : bool, default=False
        Add the log density of every row at every stored draw.

    Returns
    -------
    data : arviz.InferenceData (ArviZ 0.x) or xarray.DataTree (ArviZ 1.x)
        Group ``posterior`` holds the sampler's scalars, group ``sample_stats`` the log joint as
        ``lp`` and, per move, ``acceptance_rate_<move>``: the rate of the whole chain after
        warm-up, repeated at every draw. All have the dimensions chain and draw. Group
        ``observed_data`` holds the rows as ``X`` where the posterior knows them, and group
        ``log_likelihood``, likewise as ``X``, their log densities at the stored draws.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'skbnp[arviz]'") from error

    scalars = dict(posterior.traces)
    log_joint = scalars.pop("log_joint")
    statistics = {"lp": log_joint}
    for move, counts in posterior.acceptance.items():
        statistics[f"acceptance_rate_{move}"] = np.repeat(
            counts["rate"][:, np.newaxis], log_joint.shape[1], axis=1
        )
    groups = {"posterior": scalars, "sample_stats": statistics}
    if posterior.knows_rows:
        groups["observed_data"] = {"X": posterior.observed_data()}
    if log_likelihood:
        groups["log_likelihood"] = {"X": posterior.log_likelihood()}
    if int(arviz.__version__.split(".")[0]) == 0:
        return arviz.from_dict(**groups)
    return arviz.from_dict(groups)
