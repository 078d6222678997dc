"""Estimates from several completed tables, pooled by Rubin's rules."""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Pooled:
    """What several completed tables say of some estimates.

    All are arrays of the shape of one table's estimates, or numbers where that is one number.

    Parameters
    ----------
    estimate : ndarray
        Mean over the tables.
    variance : ndarray
        Of that estimate: within + (1 + 1 / m) between.
    within : ndarray
        Mean over the tables of the variances: what is there without missing cells.
    between : ndarray
        Variance of the estimates between the tables.
    df : ndarray
        Degrees of freedom of Student's law of (truth - estimate) / std_error.
    fraction_missing : ndarray
        Share of the information that went with the missing cells, 0 to 1.
    """

    estimate: np.ndarray
    variance: np.ndarray
    within: np.ndarray
    between: np.ndarray
    df: np.ndarray
    fraction_missing: np.ndarray

    @property
    def std_error(self):
        """Root of the variance."""
        return np.sqrt(self.variance)

    def interval(self, level=0.95):
        """Ends of the interval that holds the truth with probability `level`.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        low, high : ndarray
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        half = stats.t.ppf(0.5 + level / 2, self.df) * self.std_error
        return self.estimate - half, self.estimate + half

    def p_value(self, value=0.0):
        """Two-sided p-value of the hypothesis that the truth is `value`.

        Parameters
        ----------
        value : float or array-like, default=0.0

        Returns
        -------
        p_value : ndarray
        """
        off = np.abs(self.estimate - value)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(off > 0, off / self.std_error, 0.0)
        return 2 * stats.t.sf(t, self.df)


def pool(estimates, variances, df_complete=np.inf):
    r"""Pool what was estimated from each of several completed tables, by Rubin's rules.

    With m estimates :math:`Q_t` of variances :math:`U_t`, :math:`\bar U` their mean and B the
    variance of the :math:`Q_t`, the variance of the mean estimate is
    :math:`T = \bar U + (1 + 1/m) B` [1]_. Degrees of freedom are those of small samples [2]_:
    with :math:`\lambda = (1 + 1/m) B / T`,

    .. math::

        \nu^{-1} = \nu_m^{-1} + \nu_{obs}^{-1}, \quad
        \nu_m = (m - 1) / \lambda^2, \quad
        \nu_{obs} = \frac{\nu_{com} + 1}{\nu_{com} + 3}\, \nu_{com} (1 - \lambda).

    Parameters
    ----------
    estimates : array-like of shape (n_tables, ...)
        One estimate, or an array of them, from each table; of about normal errors.
    variances : array-like of shape (n_tables, ...)
        Their squared standard errors, as each table gives them.
    df_complete : float or array-like, default=inf
        Degrees of freedom that the estimates would have without missing cells: n - k for a
        regression of n rows on k columns.

    Returns
    -------
    pooled : Pooled

    Raises
    ------
    ValueError
        If there are fewer than two tables, shapes differ, or a number is not finite or a variance
        negative.

    References
    ----------
    .. [1] D. B. Rubin (1987). Multiple Imputation for Nonresponse in Surveys. Wiley. Chapter 3.
    .. [2] J. Barnard and D. B. Rubin (1999). Small-sample degrees of freedom with multiple
       imputation. Biometrika 86, 948-955.

    Examples
    --------
    >>> from skbnp.summaries import pool
    >>> pooled = pool([1.0, 1.2, 1.1], [0.04, 0.05, 0.03])
    >>> print(f"{pooled.estimate:.2f} +- {pooled.std_error:.2f}")
    1.10 +- 0.23
    """
    Q, U = (np.asarray(x, dtype=np.float64) for x in (estimates, variances))
    df_complete = np.asarray(df_complete, dtype=np.float64)
    if Q.shape != U.shape or Q.ndim == 0:
        raise ValueError(
            f"estimates and variances must have one shape, got {Q.shape} and {U.shape}"
        )
    m = len(Q)
    if m < 2:
        raise ValueError(f"estimates must be those of at least 2 tables, got {m}")
    if not (np.isfinite(Q).all() and np.isfinite(U).all()):
        raise ValueError("estimates and variances must be finite")
    if (U < 0).any():
        raise ValueError(f"variances must be >= 0, got {U.min():g}")
    if not (df_complete > 0).all():
        raise ValueError(f"df_complete must be > 0, got {df_complete.min():g}")
    within, between = U.mean(axis=0), Q.var(axis=0, ddof=1)
    # Equal estimates differ by rounding.
    between = np.where((Q == Q[0]).all(axis=0), 0.0, between)
    added = (1 + 1 / m) * between
    variance = within + added
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(variance > 0, added / variance, 0.0)
        of_tables = (m - 1) / share**2
        observed = np.where(
            np.isinf(df_complete) | (within == 0),  # the variance is that between tables alone
            np.inf,
            (df_complete + 1) / (df_complete + 3) * df_complete * (1 - share),
        )
        df = 1 / (1 / of_tables + 1 / observed)
    r = added / np.where(within > 0, within, 1.0)
    fraction = np.where(within > 0, (r + 2 / (df + 3)) / (r + 1), share)
    # Without a spread between tables nothing has gone, whatever the degrees of freedom.
    fraction = np.where(between > 0, np.minimum(fraction, 1.0), 0.0)
    found = (Q.mean(axis=0), variance, within, between, df, fraction)
    return Pooled(*(x[()] for x in found))
