"""The sample bot `learner` decides batches as it decides single requests, and its training script improves it."""

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest
from bot_games import FOLDER, VARIANTS, bot, module, start_games

from referee.pb import play_pb2
from referee.rules.actions import DecisionKind, Play
from referee.rules.ruleset import EMPTY, FULL, Layer
from referee.rules.table import Table
from referee.sdk import Session
from referee.sdk.env import Encoding, encode_action

LEARNER = FOLDER / "learner"
TABLES = [
    (rules, players)
    for rules in VARIANTS.values()
    for players in range(rules.min_players, rules.max_players + 1)
]


def test_weights_are_small_and_fit_the_features():
    assert (LEARNER / "weights.npy").stat().st_size <= 500_000
    weights = module("learner").load_network().weights
    assert weights.shape[0] == module("learner").HIDDEN_UNITS
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
def test_learner_knows_which_layers_a_play_snatches(rules):
    program, layers = module("learner"), [Layer(6, 2), Layer(13, 1), Layer(14, 0, 2), Layer(1, 1)]
    layers += [Layer(13, 2), Layer(1, 1, 1), Layer(9, 1, 1)]
    plays = [Play(layer) for layer in layers]
    for top in layers:
        table = Table(rules, 2)
        table.layers = [(), (top,)]
        table.hands = [list(FULL), list(EMPTY)]
        encoding = Encoding(rules, 2)
        observation = encoding.observe(table.view(0), DecisionKind.PLAY)
        situation = program.Situation(encoding, observation[None])
        actions = np.array([encode_action(play) for play in plays])
        rows = np.zeros(len(plays), np.intp)
        found = situation._find_victims(rows, program.VALUE[actions], program.SIZE[actions])
        assert found[:, 0].tolist() == [rules.snatches(play.layer, top) for play in plays]


def test_batch_of_games_with_different_rules_gets_the_replies_of_single_requests():
    session = Session(bot("learner"))
    requests = start_games(session, TABLES * 8, random.Random(1))
    single = [session.receive_bytes(request) for request in requests]
    together = play_pb2.RefereeMessage.FromString(b"".join(requests))
    assert len(together.requests) == len(requests)
    batch = session.receive(together)
    assert batch == play_pb2.BotMessage.FromString(b"".join(single))
    kinds = {request.kind for request in together.requests}
    assert len(kinds) >= 4


@pytest.fixture
def trainer(monkeypatch):
    """Return the module of the training script, which imports its neighbours as a script does."""
    monkeypatch.syspath_prepend(LEARNER)
    for name in ("bot", "lockstep", "train"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import train  # noqa: PLC0415 - its folder is on the path only now

    yield train
    for name in ("bot", "lockstep", "train"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.extended("plays 400 games")
@pytest.mark.unmeasured
def test_training_improves_the_network_and_repeats_itself_with_the_same_seed(trainer):
    learners = [trainer.Trainer(seed=3) for _ in range(2)]
    before = learners[0].measure()
    for learner in learners:
        learner.imitate(games=40)
        learner.improve(games=8)
    after = learners[0].measure()
    assert after.reward - before.reward > 4 * (before.error**2 + after.error**2) ** 0.5
    assert (learners[0].weights == learners[1].weights).all()


@pytest.mark.extended("plays 800 games")
@pytest.mark.unmeasured
@pytest.mark.parametrize("opponent", ["bait", "greedy", "final_sprint"])
def test_committed_weights_are_ahead_of_other_bots(trainer, opponent):
    learner = trainer.Trainer(seed=1)
    learner.weights = module("learner").load_network().weights
    strength = learner.measure(opponent)
    assert strength.reward > 4 * strength.error


@pytest.mark.extended("trains from the start to the first measurement")
@pytest.mark.unmeasured
def test_training_script_writes_weights_and_the_curve(tmp_path):
    script = [sys.executable, LEARNER / "train.py", "--batches", "0", "--folder", tmp_path]
    subprocess.run(script, check=True, timeout=250)
    head, *lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert head == (LEARNER / "curve.csv").read_text().splitlines()[0]
    assert [line.split(",")[0] for line in lines] == ["0"]
    written = np.load(tmp_path / "weights.npy", allow_pickle=False)
    assert written.shape == module("learner").load_network().weights.shape


def test_the_committed_curve_goes_up():
    """The best measurement is far above the first one, which is of a network that only imitates."""
    lines = (LEARNER / "curve.csv").read_text().splitlines()[1:]
    curve = [tuple(map(float, line.split(","))) for line in lines]
    assert all(one[0] < other[0] for one, other in itertools.pairwise(curve))
    first, best = curve[0], max(curve, key=lambda line: line[2])
    assert best[2] - first[2] > 4 * (first[3] ** 2 + best[3] ** 2) ** 0.5
