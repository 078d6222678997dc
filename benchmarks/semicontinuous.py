"""BNPImputer on tables in which many cells of some columns have one value.

Four kinds of generated tables, none of a law that the model has: debts and savings of households
(a logistic law of having any, log-normal amounts), rain (gamma laws on wet days), times cut off at
the end of a study, and takings with days on which shops are closed. Each has columns of names. A
fifth of the cells is removed at random. "two parts" is the default, "one part" `semicontinuous` =
False; IterativeImputer sees standardised numbers, and names as columns of 0 and 1.

Errors are root mean squares in standard deviations of the columns: of the semicontinuous columns,
and of the other numbers. "score" is that of 90 % intervals (Gneiting and Raftery 2007, section
6.2: their width, and 20 times what lies outside), in the same units, the lower the better.

Prints Markdown tables: of each table, and the geometric mean of ratios to IterativeImputer or to
one part.
"""

import numpy as np
import pandas as pd
from _imputers import by_dummies, lines_asked_for, names_of
from _report import cpu_seconds, markdown

from skbnp import BNPImputer

SHARE, LEVEL = 0.2, 0.9
METHODS = ("two parts", "one part", "IterativeImputer")


# -- tables


def households(n, rng):
    """Debts and savings go with income, age and tenure."""
    age, wealth = rng.uniform(20, 80, n), rng.normal(size=n)
    income = np.exp(7.5 + 0.5 * wealth + 0.3 * rng.normal(size=n))
    home = np.where(wealth + 0.03 * (age - 50) + rng.normal(size=n) > 0.3, "own", "rent")
    has_debt = rng.random(n) < 1 / (1 + np.exp(0.5 + 0.05 * (age - 45) - 1.5 * (home == "own")))
    debt = np.where(has_debt, np.exp(9 + 0.6 * wealth + 0.5 * rng.normal(size=n)), 0.0)
    saves = rng.random(n) < 1 / (1 + np.exp(0.3 - 1.5 * wealth))
    savings = np.where(saves, np.exp(8 + wealth + 0.6 * rng.normal(size=n)), 0.0)
    return pd.DataFrame(
        {"home": home, "age": age, "income": income, "debt": debt, "savings": savings}
    )


def rain(n, rng):
    """Wet days are cloudier and have lower pressure; three stations."""
    season = rng.choice(["winter", "spring", "summer", "autumn"], n)
    pressure = rng.normal(1013, 8, n)
    cloud = 1 / (1 + np.exp((pressure - 1013) / 5 + rng.normal(size=n)))
    warm = 10 + 8 * (season == "summer") - 7 * (season == "winter")
    temperature = warm - 4 * cloud + 3 * rng.normal(size=n)
    table = {"season": season, "pressure": pressure, "cloud": cloud, "temperature": temperature}
    front = rng.normal(size=n) - (pressure - 1013) / 8
    for station in ("coast", "hill", "plain"):
        wet = front + 0.5 * rng.normal(size=n) > 0.6
        table[station] = np.where(wet, rng.gamma(0.8, 4.0 * np.exp(0.4 * front)), 0.0)
    return pd.DataFrame(table)


def study(n, rng):
    """Times to two events, cut off at five years."""
    arm, stage = rng.choice(["drug", "placebo"], n), rng.choice(["I", "II", "III"], n)
    risk = rng.normal(size=n) + 0.8 * (stage == "III") - 0.6 * (arm == "drug")
    marker = 2.0 + risk + 0.7 * rng.normal(size=n)
    age = 60 + 8 * rng.normal(size=n)
    rate = np.exp(0.8 * risk - 1.8)
    first = np.minimum(rng.exponential(1 / (1.5 * rate)), 5.0)
    last = np.minimum(first + rng.exponential(1 / rate), 5.0)
    columns = dict(arm=arm, stage=stage, age=age, marker=marker, first=first, last=last)
    return pd.DataFrame(columns)


def takings(n, rng):
    """Shops are closed on some days, and some sell no coffee."""
    day = rng.choice(["weekday", "Saturday", "Sunday"], n, p=[0.6, 0.2, 0.2])
    kind = rng.choice(["corner", "mall", "kiosk"], n)
    is_open = rng.random(n) < np.where((day == "Sunday") & (kind != "kiosk"), 0.15, 0.95)
    size = 1.0 + (kind == "mall") + 0.4 * rng.normal(size=n)
    visitors = np.where(is_open, np.exp(4 + 0.8 * size + 0.3 * rng.normal(size=n)), 0.0)
    sales = visitors * np.exp(1 + 0.3 * rng.normal(size=n))
    coffee = np.where(kind == "mall", 0.0, 0.2 * sales * rng.beta(4, 4, n))
    columns = dict(day=day, kind=kind, size=size, visitors=visitors, sales=sales, coffee=coffee)
    return pd.DataFrame(columns)


TABLES = {
    "households": (households, ["debt", "savings"]),
    "rain": (rain, ["coast", "hill", "plain"]),
    "study": (study, ["first", "last"]),
    "takings": (takings, ["visitors", "sales", "coffee"]),
}


# -- methods


def judged(table, given, filled, columns, ends=None):
    """Error of some columns, and the share and score of intervals."""
    std = table[columns].std().to_numpy()
    hidden = given[columns].isna().to_numpy()
    truth, found = (one[columns].to_numpy() / std for one in (table, filled))
    error = float(np.sqrt(np.mean((found - truth)[hidden] ** 2)))
    if ends is None:
        return error, np.nan, np.nan
    low, high = (end[columns].to_numpy() / std for end in ends)
    outside = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    score = high - low + 2 / (1 - LEVEL) * outside
    return error, float(np.mean(outside[hidden] <= 1e-9)), float(np.mean(score[hidden]))


def compare(name, seed, n_rows, estimator):
    """A line for each method."""
    make, semicontinuous = TABLES[name]
    rng = np.random.default_rng(seed)
    table = make(n_rows, rng)
    given = table.mask(rng.random(table.shape) < SHARE)
    others = [one for one in table if one not in (*semicontinuous, *names_of(table))]
    for method in METHODS:
        ends = None
        if method == "IterativeImputer":
            filled, seconds = cpu_seconds(by_dummies, given, seed)
        else:
            options = dict(semicontinuous=method == "two parts", random_state=seed, n_jobs=1)
            imputer = BNPImputer(**options, **estimator)
            filled, seconds = cpu_seconds(imputer.fit_transform, given)
            ends = imputer.intervals(level=LEVEL)
        line = {"table": name, "seed": seed, "method": method}
        for kind, columns in (("semicontinuous", semicontinuous), ("others", others)):
            error, held, score = judged(table, given, filled, columns, ends)
            line |= {f"{kind}, error": error, f"{kind}, held": held, f"{kind}, score": score}
        hidden = given[names_of(table)].isna().to_numpy()
        right = (filled[names_of(table)] == table[names_of(table)]).to_numpy()
        yield line | {"names": float(right[hidden].mean()), "CPU s": seconds}


def ratios(lines):
    """Geometric means over the tables of what one method has to what another has."""
    frame = pd.DataFrame(lines).set_index(["table", "seed", "method"])
    found = []
    for method, other in (("two parts", "one part"), *((m, METHODS[2]) for m in METHODS[:2])):
        line = {"method": method, "to": other}
        for column in frame.columns.drop("names"):
            by_table = frame[column].unstack()
            line[column] = float(np.exp(np.log(by_table[method] / by_table[other]).mean()))
        found.append(line)
    return found


def main():
    """Print the tables."""
    lines = lines_asked_for(__doc__, TABLES, compare)
    print(markdown(lines))
    print()
    print(markdown(ratios(lines)))


if __name__ == "__main__":
    main()
