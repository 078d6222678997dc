"""Fill the missing cells of a table by a model of all of its columns.

A tree of factors fills tables of numbers, a mixture small ones and those with columns of names.
Beside FILE.csv comes FILE_imputed.csv: the same table, each missing cell filled with its
posterior mean, a name with the most probable one. All other cells stay as they are.

To analyse the filled table rather than to predict from it, take --multiple 20: estimates from
completed tables, analysed one by one, are pooled by Rubin's rules.
"""

from pathlib import Path

from skbnp.command_line.arguments import (
    REPORTS,
    add_chain_options,
    add_report_option,
    chain_options,
    check_ending,
    check_outputs,
    say,
    whole,
    write_report,
)
from skbnp.command_line.cells import DATES
from skbnp.command_line.errors import BadInput, refusing, report_in_words
from skbnp.command_line.fitting import check_is_whole, note, notes, show_progress
from skbnp.command_line.tables import (
    add_table_options,
    check_output_table,
    default_output,
    read_table,
    with_cells,
    write_table,
)

INPUT = "FILE"
EXAMPLE = "skbnp impute people.csv --index id --na -999 --std people_std.csv"


def add_options(parser):
    """What this command understands."""
    add_table_options(parser)
    parser.add_argument(
        "--model",
        choices=["auto", "mixture", "tree"],
        default="auto",
        help="what fills the cells (default: auto, by the columns)",
    )
    group = parser.add_argument_group("what is written")
    group.add_argument("--output", type=Path, metavar="FILE", help="the filled table")
    group.add_argument(
        "--std",
        type=Path,
        metavar="FILE",
        help="a table of standard deviations: 0 where a cell was given",
    )
    group.add_argument(
        "--multiple",
        type=whole(1),
        metavar="M",
        help="write M completed tables too, their missing cells drawn at random",
    )
    add_report_option(group)
    add_chain_options(parser)


def run(arguments):
    """Read, fit, write."""
    outputs = _outputs(arguments)
    table = read_table(arguments)
    empty = table.data.isna().all()
    data = table.data.loc[:, ~empty]
    _refuse_dates(data, arguments)
    n_missing = data.isna().sum()
    if not n_missing.any():
        raise BadInput(f"{table.path}: there is no missing cell to fill; --na says what marks them")
    for name in table.data.columns[empty]:
        note(f"column {name!r} has no value, and stays empty")
    imputer, filled = _filled(data, table.path, arguments)
    with refusing(table.path):
        completed = imputer.multiple(arguments.multiple) if arguments.multiple else []
    _write(table, imputer, [filled, *completed], outputs)
    n_columns = (n_missing > 0).sum()
    say(arguments, f"filled {n_missing.sum()} of {data.size} cells, in {n_columns} columns")
    for path in filter(None, outputs.values()):
        say(arguments, f"wrote {path}")
    if arguments.report is not None:
        write_report(report_in_words(imputer.report()), arguments)


def _refuse_dates(data, arguments):
    """Dates are no names of groups, one of which a missing one would get."""
    from skbnp.tables.columns import are_dates, columns_of

    for name, column in zip(data.columns, columns_of(data), strict=True):
        if name not in arguments.text and are_dates(column):
            raise BadInput(f"{arguments.file}: column {name!r} {DATES}")


def _outputs(arguments):
    """Files of tables, checked: the filled one, how sure it is, those for multiple imputation."""
    output = arguments.output or default_output(arguments.file, "imputed")
    outputs = {"--output": output, "--std": arguments.std}
    for t in range(arguments.multiple or 0):
        outputs[f"--multiple, table {t + 1}:"] = default_output(output, t + 1)
    for option, path in outputs.items():
        if path is not None:
            check_output_table(option, path)
    check_ending("--report", arguments.report, REPORTS)
    check_outputs(outputs | {"--report": arguments.report}, [arguments.file])
    return outputs


def _filled(data, path, arguments):
    """A fitted imputer, and the table it has filled."""
    from skbnp.dirichlet_process_mixture import DirichletProcessMixture
    from skbnp.imputer import BNPImputer, default_model
    from skbnp.tree_factor_model import TreeFactorModel

    models = {"mixture": DirichletProcessMixture, "tree": TreeFactorModel}
    model = default_model(data) if arguments.model == "auto" else models[arguments.model]()
    model.set_params(**chain_options(arguments))
    show_progress(model, arguments)
    imputer = BNPImputer(estimator=model, random_state=arguments.seed)
    with notes():
        with refusing(path):
            filled = imputer.fit_transform(data)
        # None where no column varies.
        if imputer.estimator_ is not None:
            check_is_whole(imputer.estimator_, arguments)
    return imputer, filled


def _write(table, imputer, tables, outputs):
    """The filled tables, and how sure the first is."""
    paths = [path for option, path in outputs.items() if option != "--std"]
    for filled, path in zip(tables, paths, strict=True):
        write_table(with_cells(table, filled, path), path, table)
    path = outputs["--std"]
    if path is not None:
        write_table(imputer.standard_deviations(), path, table)
