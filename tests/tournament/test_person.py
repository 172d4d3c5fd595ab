"""Play whole games with a person, in a process of its own. The tests decide for the person."""

import asyncio
import errno
import os
import random
import time
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from referee.bots import BotSpec
from referee.bots.manifest import load_manifest
from referee.errors import Cause
from referee.match.replay import check_record, replay_moves
from referee.records import BotId
from referee.roster.content import hash_content
from referee.roster.roster import StoredCopy
from referee.rules.events import Drawn
from referee.rules.ruleset import HIDDEN, RULESETS
from referee.sandbox import NO_ISOLATION, Refusal, Rung, ladder
from referee.store import StoredBot
from referee.tournament import person
from referee.tournament.person import (
    Chosen,
    Dealt,
    Ended,
    Failed,
    Moved,
    PersonGame,
    Requested,
    play_with_person,
)

SAMPLES = Path(__file__).parents[2] / "sample_bots"
BROKEN = Path(__file__).parents[1] / "misbehaving"
PERSON = BotId("anna", "person")
PATIENCE_S = 120


def sample(name):
    return load_manifest(SAMPLES / name).spec(SAMPLES / name)


def order(*players, ruleset="basic", isolation=Rung.NONE, stored=()):
    return PersonGame(
        players=players,
        ruleset=RULESETS[ruleset],
        isolation=isolation,
        stored=stored,
        parent_pid=os.getpid(),
    )


@contextmanager
def hosted(game, main=play_with_person):
    """Start a game; give the connection and the process. At the end the process must end by itself."""
    context = get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=main, args=(other, game))
    process.start()
    other.close()
    try:
        yield own, process
    finally:
        own.close()
        process.join(PATIENCE_S)
        ended = process.exitcode
        process.kill()
        assert ended == 0


def next_news(connection):
    assert connection.poll(PATIENCE_S), "no news came"
    return connection.recv()


def play_out(connection, chance):
    """Decide at random until the game ends; return all news."""
    news = [next_news(connection)]
    while not isinstance(news[-1], Ended | Failed):
        if isinstance(news[-1], Requested):
            request = news[-1]
            connection.send(Chosen(request.number, chance.randrange(len(request.decision.legal))))
        news.append(next_news(connection))
    return news


def of_kind(news, kind):
    return [each for each in news if isinstance(each, kind)]


@pytest.mark.parametrize(
    ("ruleset", "players", "seat"),
    [
        ("basic", (sample("greedy"), PERSON, sample("random")), 1),
        pytest.param(
            "duel",
            (PERSON, sample("counter")),
            0,
            marks=pytest.mark.extended("plays more games of people"),
        ),
    ],
)
def test_whole_game_is_played_and_its_record_is_right(ruleset, players, seat):
    with hosted(order(*players, ruleset=ruleset)) as (connection, _):
        news = play_out(connection, random.Random(5))
    assert isinstance(news[0], Dealt)
    assert news[0].view.seat == seat
    record = news[-1].record
    check_record(record)
    assert record.seating[seat] == PERSON
    assert not record.faults
    moved = of_kind(news, Moved)
    assert tuple(each.move for each in moved) == record.moves
    assert {each.decision.seat for each in of_kind(news, Requested)} == {seat}
    assert len(of_kind(news, Requested)) == sum(move.seat == seat for move in record.moves)
    for shown, step in zip(moved, replay_moves(record), strict=True):
        for told, event in zip(shown.events, step.events, strict=True):
            hidden = isinstance(event, Drawn) and event.slot is None and event.seat != seat
            assert told == (event._replace(cards=(HIDDEN,)) if hidden else event)


@pytest.mark.extended("plays more games")
def test_choices_that_are_not_awaited_or_not_legal_have_no_effect():
    with hosted(order(PERSON, sample("random"))) as (connection, _):
        dealt, request = next_news(connection), next_news(connection)
        assert isinstance(dealt, Dealt)
        count = len(request.decision.legal)
        for number, choice in ((request.number + 1, 0), (0, 0), (request.number, count), (1, -1)):
            connection.send(Chosen(number, choice))
        connection.send(Chosen(request.number, count - 1))
        connection.send(Chosen(request.number, 0))
        moved = next_news(connection)
    assert moved.move.action == request.decision.legal[-1]


@pytest.mark.extended("plays more games")
def test_person_may_think_longer_than_the_limit_of_bots():
    with hosted(order(PERSON, sample("random"))) as (connection, _):
        request = [next_news(connection) for _ in range(2)][1]
        time.sleep(5.5)  # a bot has 5 s
        connection.send(Chosen(request.number, 0))
        moved = next_news(connection)
    assert not moved.move.stand_in
    assert moved.move.elapsed_us == 5_000_000
    assert moved.move.lag_us >= 500_000


@pytest.mark.extended("plays more games")
def test_bot_that_crashes_forfeits_and_the_person_plays_on():
    crashes = BotSpec(BotId("crash", "1"), BROKEN, ("python3", "bot.py", "exits_with_3"))
    with hosted(order(PERSON, crashes)) as (connection, _):
        record = play_out(connection, random.Random(1))[-1].record
    assert [(fault.seat, fault.cause, fault.forfeit) for fault in record.faults] == [
        (1, Cause.CRASH, True)
    ]
    assert record.ranks == (1, 2)


@pytest.mark.extended("plays more games")
def test_game_ends_with_all_processes_when_the_connection_is_closed():
    with hosted(order(sample("greedy"), PERSON)) as (connection, process):
        while not isinstance(next_news(connection), Requested):
            pass
        family = psutil.Process(process.pid).children(recursive=True)
        assert family
    _, alive = psutil.wait_procs(family, PATIENCE_S)
    assert not alive


def play_on_bare_machine(connection, game):
    """Do the same as `play_with_person`, on a machine that gives no isolation."""
    refusal = Refusal(Rung.FULL, "there is no bubblewrap", "make some")

    async def find_nothing():
        return replace(NO_ISOLATION, refusals=(refusal,))

    with patch.object(ladder, "_find_strongest", find_nothing):
        play_with_person(connection, game)


@pytest.mark.extended("plays more games")
@pytest.mark.parametrize("is_sample", [True, False])
def test_without_isolation_only_sample_bots_play(is_sample):
    stored = StoredBot(
        name="greedy",
        version="1",
        author="anna",
        language="python",
        folder="",
        content_hash=hash_content(SAMPLES / "greedy") if is_sample else "0" * 64,
        added_at_us=0,
    )
    copy = StoredCopy(stored, SAMPLES / "greedy")
    game = order(PERSON, sample("greedy"), isolation=None, stored=(copy,))
    with hosted(game, play_on_bare_machine) as (connection, _):
        news = next_news(connection)
        if is_sample:
            assert isinstance(news, Dealt)
        else:
            assert news.reason.startswith("greedy@1: this machine cannot isolate bots (there is no")


def play_without_descriptors(connection, game):
    """Do the same as `play_with_person`, on a machine that has no descriptors left."""
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    with patch.object(person, "select_isolation", side_effect=error):
        play_with_person(connection, game)


def test_lack_of_resources_is_told():
    game = order(PERSON, sample("greedy"))
    with hosted(game, play_without_descriptors) as (connection, _):
        assert next_news(connection) == Failed("This machine cannot go on: Too many open files.")


@pytest.mark.extended("plays more games")
def test_game_on_the_strongest_rung_says_so_in_its_record():
    with hosted(order(PERSON, sample("random"), isolation=None)) as (connection, _):
        record = play_out(connection, random.Random(2))[-1].record
    isolation = asyncio.run(ladder.select_isolation())
    assert record.isolation == isolation.summary
