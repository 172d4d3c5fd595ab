"""Matches drawn anew: of many thousands, groups, from which a deviation is known as well."""

import numpy as np
import pytest

from referee.ratings.intervals import Resampling

FEW, MANY = 300, 9_500
GROUPS = 2_000


def test_each_of_few_matches_is_drawn_by_itself():
    resampling = Resampling.from_matches(FEW)
    assert resampling.group.tolist() == list(range(FEW))
    assert (resampling.counts.sum(axis=0) == FEW).all()


def test_of_many_each_group_has_as_many_put_together_by_lot():
    resampling = Resampling.from_matches(MANY)
    sizes = np.bincount(resampling.group)
    assert len(sizes) == len(resampling.counts) == GROUPS
    assert sizes.max() - sizes.min() <= 1
    neighbours = np.abs(np.diff(resampling.group.astype(int)))
    assert abs(neighbours.mean() / (GROUPS / 3) - 1) < 0.05, "as of two numbers by chance"


@pytest.mark.parametrize("matches", [FEW, MANY])
def test_means_of_drawings_deviate_as_a_mean_does(matches):
    values = np.random.default_rng(1).normal(3, 2, (matches, 2))
    drawn = Resampling.from_matches(matches).means(values)
    wanted = values.std(axis=0) / np.sqrt(matches)
    assert np.abs(drawn.std(axis=0) / wanted - 1).max() < 0.08
    assert (np.abs(drawn.mean(axis=0) - values.mean(axis=0)) < wanted / 5).all()


@pytest.mark.parametrize("matches", [FEW, MANY])
def test_some_drawings_are_those_of_all(matches):
    values = np.random.default_rng(2).normal(size=(matches, 1))
    resampling = Resampling.from_matches(matches)
    part = slice(10, 30)
    assert np.allclose(resampling.sums(values, part), resampling.sums(values)[part])
