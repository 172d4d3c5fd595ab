"""The example learns."""

import pytest

from referee.train.example import Learner


@pytest.mark.extended("learns for a minute")
@pytest.mark.unmeasured
def test_example_gets_better_than_random_in_a_minute():
    learner = Learner()
    before, error_before = learner.measure()
    assert abs(before) < 4 * error_before  # it chooses at random, as its opponents do
    for _ in learner.learn(60):
        pass
    after, error_after = learner.measure()
    assert after - before > 4 * (error_before**2 + error_after**2) ** 0.5
