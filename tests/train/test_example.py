"""The example learns, and refuses wrong arguments."""

import pytest

from referee.train.example import Learner, main


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


@pytest.mark.parametrize("arguments", [["abc"], ["1", "2"], ["-1"], ["nan"], ["inf"]])
def test_wrong_argument_is_one_line_and_exit_code_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    written = capsys.readouterr()
    assert not written.out
    assert written.err.count("\n") == 1
    assert written.err.startswith("usage: python -m referee.train.example [SECONDS] (")
