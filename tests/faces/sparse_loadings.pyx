"""What tests call of the moves of sparse loadings."""

from libc.math cimport exp

from skbnp.likelihoods.sparse_loadings.moves.finite_columns cimport (
    log_printed_add,
    log_printed_delete,
)


def printed_ratios(Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass):
    """The printed ratios (add, delete) of columns without links."""
    return (
        exp(log_printed_add(n_columns, n_active, n_rows, mass)),
        exp(log_printed_delete(n_columns, n_active, n_rows, mass)),
    )
