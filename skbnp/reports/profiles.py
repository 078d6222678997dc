"""Profiles of clusters: what their columns have that those of the other rows have not."""

import numpy as np

from skbnp.markup import listed, measured, number, percent
from skbnp.reports import pictures
from skbnp.reports.page import Section
from skbnp.summaries.profiles import profiles

# A difference is named from so many standard deviations of the column on, and from so many
# standard errors; a spread from so many times that of the other rows, or one over that.
_NAMED, _ERRORS, _LOUDER = 0.5, 3.0, 2.0
# Columns named of each cluster, and clusters that sentences go through, at most.
_MOST_COLUMNS, _MOST_CLUSTERS = 4, 12
# Columns and levels in the table of means, at most.
_MOST_TRAITS = 30


def sections(partition, table):
    """The profile of every cluster, where there are several."""
    if int(partition.labels.max()) == 0:
        return []
    found = profiles(table.X, partition.labels, table.n_levels)
    n_clusters = len(found.inside)
    sentences = [
        "Differences from all other rows; s is the standard deviation of the column over the whole "
        "table. The groups were made from these columns, so that no test of significance applies."
    ]
    for k in range(min(n_clusters, _MOST_CLUSTERS)):
        sentences.append(f"{partition.noun.capitalize()} {k}: {_in_words(found, k, table)}.")
    if n_clusters > _MOST_CLUSTERS:
        sentences.append(f"The other {n_clusters - _MOST_CLUSTERS} are in the table.")
    records = [
        _record(found, k, place, table, partition.noun)
        for k in range(n_clusters)
        for place in np.argsort(-_strength(found, k), kind="stable")
    ]
    return [
        Section(
            "profiles",
            f"What sets each {partition.noun} apart",
            tuple(sentences),
            records,
            n_shown=0,
            pictures=(pictures.profiles(found, partition, table),),
        ),
        Section(
            "means",
            f"Every column by {partition.noun}",
            (
                "Means of the cells that are there, and shares of the rows for names and for yes "
                "or no; s is the standard deviation of the column over the whole table.",
            ),
            [_means(found, place, table, partition.noun) for place in range(len(found.column))],
            n_shown=_MOST_TRAITS,
        ),
    ]


def _strength(found, k):
    """How far each trait is from that of the other rows; 0 for what may be chance."""
    difference = np.abs(np.nan_to_num(found.difference[k]))
    error = np.nan_to_num(found.error[k], nan=0.0)
    return np.where(difference > _ERRORS * error, difference, 0.0)


def _in_words(found, k, table):
    strength = _strength(found, k)
    said, columns = [], []
    # Of two levels that differ alike, the one that the cluster has.
    order = np.lexsort((-np.nan_to_num(found.difference[k]), -np.round(strength, 6)))
    for place in order:
        # A column of levels is named once, by the level that differs most.
        if strength[place] < _NAMED:
            break
        if found.column[place] not in columns:
            columns.append(found.column[place])
            if len(said) < _MOST_COLUMNS:
                said.append(_trait(found, k, place, table))
    n_more = len(columns) - len(said)
    said += _spreads(found, k, table, columns)[: _MOST_COLUMNS - len(said)]
    if not said:
        return (
            f"no column differs by more than {_NAMED} s on its own; columns together set it apart"
        )
    more = f"; {n_more} more columns differ" if n_more > 1 else "; one more column differs"
    return listed(said, _MOST_COLUMNS + 1) + (more if n_more else "")


def _is_share(found, place, table):
    return found.level[place] >= 0 or table.families[found.column[place]] == "bernoulli"


def _name(found, place, table):
    column, level = found.column[place], found.level[place]
    is_flag = level < 0 and _is_share(found, place, table)
    return table.trait(column, level) + (" = 1" if is_flag else "")


def _trait(found, k, place, table):
    column = found.column[place]
    inside, outside = found.inside[k, place], found.outside[k, place]
    if _is_share(found, place, table):
        name = _name(found, place, table)
        return f"{name} in {percent(inside)} of the rows (elsewhere {percent(outside)})"
    direction = "high" if inside > outside else "low"
    spread = found.spread[place]
    return (
        f"{direction} {table.names[column]}, mean {measured(inside, spread)} (elsewhere "
        f"{measured(outside, spread)}; {found.difference[k, place]:+.1f} s)"
    )


def _spreads(found, k, table, named):
    """Columns that vary much more or less than elsewhere, beyond those named already."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(np.log(found.spread_ratio[k]))
        # The logarithm of a standard deviation of n cells has about this error.
        chance = _ERRORS / np.sqrt(2.0 * (found.n_seen[k] - 1.0))
    size = np.where(np.isfinite(size) & (size > chance), size, 0.0)
    out = []
    for place in np.argsort(-size, kind="stable"):
        if size[place] < np.log(_LOUDER):
            break
        # The spread of yes or no follows from its mean.
        is_flag = table.families[found.column[place]] == "bernoulli"
        if not is_flag and found.column[place] not in named:
            ratio = found.spread_ratio[k, place]
            times, than = (ratio, "more") if ratio > 1 else (1 / ratio, "less")
            name = table.names[found.column[place]]
            out.append(f"{name} varies {number(times, 2)} times {than} than elsewhere")
    return out


def _means(found, place, table, noun):
    """One column, or one of its levels, over all clusters."""
    if _is_share(found, place, table):
        name, spread, words = _name(found, place, table), "", percent
    else:
        s = found.spread[place]
        name, spread = table.names[found.column[place]], number(s)

        def words(mean):
            return measured(mean, s)

    means = {f"{noun} {k}": words(mean) for k, mean in enumerate(found.inside[:, place])}
    return {"column": name, **means, "s": spread}


def _record(found, k, place, table, noun):
    column, level = found.column[place], found.level[place]
    return {
        noun: k,
        "column": table.names[column],
        "level": "" if level < 0 else str(table.levels[column][level]),
        "mean or share": float(found.inside[k, place]),
        "elsewhere": float(found.outside[k, place]),
        "difference": float(found.difference[k, place]),
        "error": float(found.error[k, place]),
        "spread ratio": float(found.spread_ratio[k, place]),
    }
