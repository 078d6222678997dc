"""BNPImputer on tables in which columns of names say the same of each other.

Three kinds of generated tables beside skewed measurements: players whose league of this year is
that of the next for 95 of 100; sales of shops with a region's code and its words, an eleventh of
which are those of another one; patients whose title says their sex, and a diagnosis its chapter. A
fifth of the cells is removed at random. "lookup" is the default, "model" has ``lookup=False``;
IterativeImputer sees standardised numbers, and names as columns of 0 and 1.

"right" is the share of removed names that are filled right, "claimed" that of the same names in 20
completed tables, which is what the imputer says of it, "together" how often the names of
the first two columns go together where at least one of them was removed: in the complete table, and
in the mean of 20 completed ones.

Prints a Markdown table, means over seeds.
"""

import numpy as np
import pandas as pd
from _imputers import by_dummies, lines_asked_for, names_of
from _report import cpu_seconds, markdown

from skbnp import BNPImputer

SHARE, N_TABLES = 0.2, 20
METHODS = ("lookup", "model", "IterativeImputer")


def measurements(n, d, rng):
    """Log-normal columns of two factors."""
    factors = rng.normal(size=(n, 2))
    logs = factors @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(n, d))
    return pd.DataFrame(np.exp(0.5 * logs)).add_prefix("x")


def players(n, rng):
    """Two years' leagues, which nearly all players stay in."""
    league = rng.choice(["A", "N"], n)
    other = np.where(league == "A", "N", "A")
    following = np.where(rng.random(n) < 0.95, league, other)
    return pd.DataFrame({"league": league, "next": following}).join(measurements(n, 16, rng))


def shops(n, rng):
    """A code of four regions, and their words, some of them wrong."""
    words = np.array(["north", "east", "south", "west"])
    code = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    written = np.where(rng.random(n) < 1 / 11, rng.choice(4, n), code)
    table = pd.DataFrame(
        {"code": np.array(["N1", "E1", "S1", "W1"])[code], "words": words[written]}
    )
    sales = measurements(n, 12, rng)
    sales["x0"] *= 1.0 + code
    return table.join(sales)


def patients(n, rng):
    """Titles and sex, diagnoses and chapters; measurements differ by chapter."""
    sex = rng.choice(["f", "m"], n)
    title = np.where(sex == "m", "Mr", rng.choice(["Mrs", "Ms"], n))
    title = np.where(rng.random(n) < 0.08, "Dr", title)
    diagnosis = rng.choice(12, n, p=np.arange(12, 0, -1) / 78)
    chapter = np.array(["I", "II", "III"])[diagnosis // 4]
    values = measurements(n, 10, rng)
    values.iloc[:, :3] = values.iloc[:, :3].to_numpy() * (1.0 + diagnosis // 4)[:, np.newaxis]
    columns = {"sex": sex, "title": title, "chapter": chapter}
    diagnoses = np.array([f"D{number:02}" for number in diagnosis])
    return pd.DataFrame(columns | {"diagnosis": diagnoses}).join(values)


TABLES = {"players": players, "shops": shops, "patients": patients}


def together(table, rows):
    """How often the most frequent pairs of the first two columns come."""
    first, second = table.columns[:2]
    return float((table[first].map(_of_the_other(table)) == table[second])[rows].mean())


def _of_the_other(table):
    first, second = table.columns[:2]
    return table.groupby(first)[second].agg(lambda names: names.mode()[0]).to_dict()


def compare(name, seed, n_rows, estimator):
    """A line for each method."""
    rng = np.random.default_rng(seed)
    table = TABLES[name](n_rows, rng)
    given = table.mask(rng.random(table.shape) < SHARE)
    names = names_of(table)
    numbers = table.columns.drop(names)
    hidden, holes = given[names].isna().to_numpy(), given[numbers].isna().to_numpy()
    rows = given.iloc[:, :2].isna().any(axis=1)
    for method in METHODS:
        line = {"table": name, "seed": seed, "method": method}
        if method == "IterativeImputer":
            filled, seconds = cpu_seconds(by_dummies, given, seed)
        else:
            options = dict(lookup=method == "lookup", random_state=seed, n_jobs=1)
            imputer = BNPImputer(**options, **estimator)
            filled, seconds = cpu_seconds(imputer.fit_transform, given)
            completed = imputer.multiple(N_TABLES)
            same = [(one[names] == filled[names]).to_numpy()[hidden].mean() for one in completed]
            line["claimed"] = float(np.mean(same))
            line["together"] = float(np.mean([together(one, rows) for one in completed]))
        line["right"] = float((filled[names] == table[names]).to_numpy()[hidden].mean())
        line["in truth"] = together(table, rows)
        off = (filled[numbers] - table[numbers]).to_numpy() / table[numbers].std().to_numpy()
        yield line | {
            "error of numbers": float(np.sqrt(np.mean(off[holes] ** 2))),
            "CPU s": seconds,
        }


def main():
    """Print the table."""
    lines = lines_asked_for(__doc__, TABLES, compare)
    frame = pd.DataFrame(lines).drop(columns="seed")
    means = frame.groupby(["table", "method"], sort=False).mean().reset_index()
    columns = ["table", "method", "right", "claimed", "together", "in truth", "error of numbers"]
    print(markdown(means[[*columns, "CPU s"]].to_dict("records")))


if __name__ == "__main__":
    main()
