"""Mark some parameters of a test as `extended`, so that plain `pytest` runs it with the others only."""

import pytest


def extend_all_but(plain, values, reason):
    """Return all `values` as parameters of a test; those that are not in `plain` have the mark `extended`."""
    return extend_cases_but(plain, {value: (value,) for value in values}, reason)


def extend_cases_but(plain, cases, reason):
    """Do the same for cases with several values, which `cases` has by their name."""
    assert set(plain) <= set(cases)
    mark = pytest.mark.extended(reason)
    return [
        pytest.param(*values, id=str(name), marks=() if name in plain else mark)
        for name, values in cases.items()
    ]
