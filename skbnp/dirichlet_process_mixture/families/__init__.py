"""What columns may hold, a line for each family; `_columns.py` says what a family brings."""

# ruff: noqa: F401
# isort: off
from skbnp.dirichlet_process_mixture.families.gaussian import GaussianPrior
from skbnp.dirichlet_process_mixture.families.levels import CategoricalPrior
from skbnp.dirichlet_process_mixture.families.counts import PoissonPrior

# isort: on
from skbnp.dirichlet_process_mixture.families._columns import ColumnsPrior

# The families, in the order of a prior's parts; what a column may be called, in order.
FAMILIES = tuple(
    found
    for found in list(globals().values())
    if isinstance(found, type) and issubclass(found, ColumnsPrior) and found is not ColumnsPrior
)
KINDS = {kind.name: kind for family in FAMILIES for kind in family.KINDS}
