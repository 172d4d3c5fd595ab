"""Test the update by one game against the library, and the treatment of ties."""

from collections import Counter
from itertools import pairwise, permutations
from math import factorial, isfinite

import pytest
import trueskill
from hypothesis import given
from hypothesis import strategies as st

from referee.ratings.trueskill import Model, Rating, Settings, _balanced_orders

MODEL = Model(Settings())
PRIOR = MODEL.prior

ratings = st.builds(Rating, st.floats(5, 45), st.floats(0.5, 25 / 3))
seats = st.lists(st.tuples(st.integers(1, 4), st.just(PRIOR) | ratings), min_size=2, max_size=5)


def by_the_library(priors, ranks):
    rated = trueskill.TrueSkill(tau=0).rate(
        [(trueskill.Rating(*prior),) for prior in priors], ranks
    )
    return [Rating(rating.mu, rating.sigma) for (rating,) in rated]


def test_the_prior_and_its_conservative_rating():
    assert Rating(25.0, 25 / 3) == PRIOR
    assert PRIOR.conservative == 0.0
    assert Rating(30.0, 2.0).conservative == 24.0


def test_a_duel_gives_the_published_numbers():
    winner, loser = MODEL.update([PRIOR, PRIOR], [1, 2])
    assert winner == pytest.approx((29.396, 7.171), abs=1e-3)
    assert loser == pytest.approx((20.604, 7.171), abs=1e-3)


def test_update_without_ties_equals_the_library_to_the_last_bit():
    priors = [Rating(25.0, 8.0), Rating(31.0, 2.5), Rating(18.0, 4.0), PRIOR]
    assert MODEL.update(priors, [3, 1, 4, 2]) == by_the_library(priors, [3, 1, 4, 2])


def test_library_alone_rates_tied_seats_differently():
    losers = by_the_library([PRIOR] * 5, [1, 2, 2, 2, 2])[1:]
    assert len(set(losers)) == 4


def test_tied_seats_with_equal_ratings_stay_equal():
    winner, *losers = MODEL.update([PRIOR] * 5, [1, 2, 2, 2, 2])
    assert len(set(losers)) == 1
    assert losers[0].mu < PRIOR.mu < winner.mu


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_tie_of_all_seats_changes_no_mu(players):
    after = MODEL.update([PRIOR] * players, [1] * players)
    assert len(set(after)) == 1
    assert after[0].mu == pytest.approx(PRIOR.mu)
    assert after[0].sigma < PRIOR.sigma


def test_a_tie_is_the_mean_over_both_orders():
    first, second, last = Rating(28.0, 3.0), Rating(22.0, 6.0), Rating(25.0, 5.0)
    one = by_the_library([first, second, last], [1, 1, 3])
    other = by_the_library([second, first, last], [1, 1, 3])
    after = MODEL.update([first, second, last], [1, 1, 3])
    assert one[0] != other[1]
    for rating, a, b in zip(after, one, [other[1], other[0], other[2]], strict=True):
        assert rating == pytest.approx(((a.mu + b.mu) / 2, (a.sigma + b.sigma) / 2), abs=1e-12)


@given(seats, st.data())
def test_order_of_seats_changes_no_bit(seats, data):
    shuffled = data.draw(st.permutations(range(len(seats))))
    ranks, priors = zip(*seats, strict=True)
    after = MODEL.update(priors, ranks)
    again = MODEL.update([priors[seat] for seat in shuffled], [ranks[seat] for seat in shuffled])
    assert again == [after[seat] for seat in shuffled]


@given(seats)
def test_equal_bots_are_rated_by_their_ranks_alone(seats):
    ranks = [rank for rank, _ in seats]
    after = MODEL.update([PRIOR] * len(ranks), ranks)
    by_rank = sorted(zip(ranks, after, strict=True))
    for (rank, rating), (next_rank, next_rating) in pairwise(by_rank):
        if rank == next_rank:
            assert rating == next_rating
        else:
            assert rating.mu > next_rating.mu


def test_order_of_five_tied_seats_does_not_matter():
    priors = [Rating(20.0 + seat, 3.0 + seat / 2) for seat in range(5)]
    after = MODEL.update(priors, [1] * 5)
    assert MODEL.update(priors[::-1], [1] * 5) == after[::-1]


@pytest.mark.parametrize(("size", "number"), [(1, 1), (2, 2), (3, 6), (4, 4), (5, 10)])
def test_orders_of_tied_seats_are_few_and_balanced(size, number):
    orders = _balanced_orders(size)
    assert len(orders) == number <= factorial(size)
    assert all(sorted(order) == list(range(size)) for order in orders)
    places = Counter(item for order in orders for item in enumerate(order))
    followers = Counter(item for order in orders for item in pairwise(order))
    assert (len(places), len(set(places.values()))) == (size**2, 1)
    assert (len(followers), len(set(followers.values()))) == (size * (size - 1), size > 1)


@pytest.mark.parametrize("tied", [4, 5])
def test_few_orders_of_tied_seats_are_nearly_the_mean_over_all_orders(tied):
    priors = [Rating(20.0 + 3 * seat, 3.0 + seat) for seat in range(tied)]
    every = [
        dict(zip(order, by_the_library([priors[seat] for seat in order], [1] * tied), strict=True))
        for order in permutations(range(tied))
    ]
    for seat, after in enumerate(MODEL.update(priors, [1] * tied)):
        mean = sum(rated[seat].mu for rated in every) / len(every)
        assert after.mu == pytest.approx(mean, abs=0.01 * priors[seat].sigma)


def test_only_the_order_of_ranks_counts():
    priors = [Rating(25.0, 8.0), Rating(31.0, 2.5), PRIOR]
    assert MODEL.update(priors, [1, 3, 3]) == MODEL.update(priors, [1, 2, 2])


def test_tau_raises_sigma():
    restless = Model(Settings(tau=1.0))
    still = MODEL.update([Rating(25.0, 1.0)] * 2, [1, 2])
    moved = restless.update([Rating(25.0, 1.0)] * 2, [1, 2])
    assert moved[0].sigma > still[0].sigma


def test_certain_result_between_distant_bots_changes_nothing():
    best, worst = Rating(1000.0, 2.0), Rating(25.0, 8.0)
    for before, after in zip((best, worst), MODEL.update([best, worst], [1, 2]), strict=True):
        assert after == pytest.approx(before)


@pytest.mark.parametrize("ranks", [(1, 2), (1, 1)])
@pytest.mark.parametrize("lead", [200.0, 231.0, 232.0, 233.0, 234.0, 400.0, 1e5])
def test_unexpected_result_between_distant_bots_brings_them_together(ranks, lead):
    low, high = MODEL.update([Rating(25.0, 1.0), Rating(25.0 + lead, 1.0)], ranks)
    pulled = lead / (2 + 2 * (25 / 6) ** 2)  # the share of each bot's variance in that of the lead
    assert low.mu == pytest.approx(25 + pulled, rel=0.02)
    assert high.mu == pytest.approx(25 + lead - pulled, rel=0.02)
    assert 0.9 < low.sigma < 1
    assert 0.9 < high.sigma < 1


@given(
    st.lists(
        st.tuples(
            st.integers(1, 5), st.builds(Rating, st.floats(-1e4, 1e4), st.floats(0.5, 25 / 3))
        ),
        min_size=2,
        max_size=5,
    )
)
def test_any_game_between_distant_bots_can_be_rated(seats):
    before = [prior for _, prior in seats]
    after = MODEL.update(before, [rank for rank, _ in seats])
    for old, new in zip(before, after, strict=True):
        assert isfinite(new.mu)
        assert 0 < new.sigma <= old.sigma * (1 + 1e-9)
