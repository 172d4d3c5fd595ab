"""Test the resampling of matches, and of groups if there are many matches."""

import numpy as np
import pytest

from referee.ratings.intervals import Resampling

FEW, MANY = 300, 9_500
GROUPS = 2_000


def test_few_matches_are_drawn_one_by_one():
    resampling = Resampling.from_matches(FEW)
    assert resampling.group.tolist() == list(range(FEW))
    assert (resampling.counts.sum(axis=0) == FEW).all()


def test_many_matches_are_drawn_in_random_groups_of_equal_size():
    resampling = Resampling.from_matches(MANY)
    sizes = np.bincount(resampling.group)
    assert len(sizes) == len(resampling.counts) == GROUPS
    assert sizes.max() - sizes.min() <= 1
    neighbours = np.abs(np.diff(resampling.group.astype(int)))
    assert abs(neighbours.mean() / (GROUPS / 3) - 1) < 0.05, "as of two numbers by chance"


@pytest.mark.parametrize("matches", [FEW, MANY])
def test_resampled_means_have_the_deviation_of_a_mean(matches):
    values = np.random.default_rng(1).normal(3, 2, (matches, 2))
    drawn = Resampling.from_matches(matches).means(values)
    wanted = values.std(axis=0) / np.sqrt(matches)
    assert np.abs(drawn.std(axis=0) / wanted - 1).max() < 0.08
    assert (np.abs(drawn.mean(axis=0) - values.mean(axis=0)) < wanted / 5).all()


@pytest.mark.parametrize("matches", [FEW, MANY])
def test_slice_of_resamples_equals_that_part_of_all(matches):
    values = np.random.default_rng(2).normal(size=(matches, 1))
    resampling = Resampling.from_matches(matches)
    part = slice(10, 30)
    assert np.allclose(resampling.sums(values, part), resampling.sums(values)[part])


@pytest.mark.parametrize("matches", [FEW, MANY])
def test_sign_flips_have_each_group_once_with_either_sign(matches):
    values = np.random.default_rng(3).normal(size=(matches, 1))
    flips = Resampling.flip_signs(matches, 400)
    assert flips.draws == 400
    assert set(np.unique(flips.counts)) == {-1, 1}
    sums = flips.sums(values)
    wanted = np.sqrt((values**2).sum())
    assert abs(sums.std() / wanted - 1) < 0.15
    assert abs(sums.mean()) < wanted / 5
