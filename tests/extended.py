"""Mark some parameters of a test as `extended`, so that plain `pytest` runs it with the others only."""

import pytest


def extend_all_but(plain, values, reason):
    """Return all `values` as parameters of a test; those that are not in `plain` have the mark `extended`."""
    assert set(plain) <= set(values)
    mark = pytest.mark.extended(reason)
    return [value if value in plain else pytest.param(value, marks=mark) for value in values]
