"""Test that a league returns what was stored: once, complete and in schedule order."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from threading import Thread

import pytest
from records import (
    NAMES,
    SEED,
    add_bot,
    bot,
    faulty,
    filled,
    played,
    schedule,
    swap_bots,
    tournament,
)

from referee.errors import Cause, NotFoundError, RefereeError, StoreError, UserError
from referee.records import BotId, Usage
from referee.schedule import Deals
from referee.store import (
    GameChoice,
    HostFigures,
    NewExtension,
    RoundProgress,
    StoredHost,
    StoredUsage,
    database,
)
from referee.store.database import write_patiently
from referee.store.league import League

TWICE = "UNIQUE|unique"
"""What the databases say about a violated unique constraint."""


@pytest.fixture
def league(tmp_path, db):
    with League.open(tmp_path / "league", create=True, db=db) as opened:
        yield opened


def test_bots_are_listed_in_the_order_of_submission(league):
    rows = [bot("bob"), bot("ann", "2.0"), bot("ann"), bot("bob", "0.9")]
    for row in rows:
        add_bot(league, row)
    assert league.bots() == rows
    assert league.bots("ann") == rows[1:3]
    with league.unchanged_versions("bob") as versions:
        assert versions == [rows[0], rows[3]]


@pytest.mark.parametrize(
    "twin",
    [bot("ann", "1.0", "other"), replace(bot("ann"), version="2.0")],
    ids=["label", "content"],
)
def test_second_bot_of_the_same_version_or_content_is_refused(league, twin):
    add_bot(league, bot("ann"))
    with pytest.raises(UserError, match=TWICE):
        add_bot(league, twin)
    assert league.bots() == [bot("ann")]


def test_no_other_process_adds_a_bot_while_a_version_is_chosen(tmp_path, league, db):
    seen = []

    def add_another():
        def choose(bots):
            seen.extend(bots)
            return bot("ann", "2.0")

        with League.open(tmp_path / "league", create=False, db=db) as other:
            other.add_version("ann", choose)

    def choose(_bots):
        other.start()
        time.sleep(0.1)
        return bot("ann")

    other = Thread(target=add_another)
    assert league.add_version("ann", choose) == bot("ann")
    other.join()
    assert seen == [bot("ann")]
    assert league.bots() == [bot("ann"), bot("ann", "2.0")]


def test_nothing_is_added_if_the_version_is_known_or_none_is_chosen(league):
    def refuse(_bots):
        raise UserError("no")

    add_bot(league, bot("ann"))
    assert league.add_version("ann", lambda versions: versions[0]) == bot("ann")
    with pytest.raises(UserError, match="no"):
        league.add_version("ann", refuse)
    assert league.bots() == [bot("ann")]


def test_patient_write_tries_again_while_the_database_is_locked_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(database, "_TRY_S", 0.0)
    tries = []

    def write(enough):
        tries.append(enough)
        if len(tries) < enough:
            raise StoreError("locked")

    write_patiently(lambda: write(3))
    assert len(tries) == 3
    tries.clear()
    with pytest.raises(StoreError, match="locked"):
        write_patiently(lambda: write(1_000))
    assert 3 < len(tries) < 100


def test_patient_write_waits_after_an_error_that_comes_at_once(monkeypatch):
    monkeypatch.setattr(database, "_TRY_S", 0.2)
    errors = iter([StoreError("database or disk is full")] * 2)

    def write():
        for error in errors:
            raise error

    began_s = time.monotonic()
    write_patiently(write)
    assert time.monotonic() - began_s >= 0.4


def test_patient_write_tries_again_if_the_database_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_TRY_S", 0.0)
    folder, away = tmp_path / "league", tmp_path / "away"
    League.open(folder, create=True).close()
    (folder / "league.db").rename(away)
    (folder / "league.db").mkdir()
    tries = []

    def write():
        tries.append(1)
        if len(tries) == 3:
            (folder / "league.db").rmdir()
            away.rename(folder / "league.db")
        with League.open(folder, create=True) as league:
            add_bot(league, bot("ann"))

    write_patiently(write)
    assert len(tries) == 3


def test_game_whose_commit_was_not_confirmed_is_found_at_the_next_try(league, monkeypatch):
    monkeypatch.setattr(database, "_TRY_S", 0.0)
    game, other = filled(league)[:2]
    add = league.add_game

    def lose_answer(record):
        add(record)
        monkeypatch.setattr(league, "add_game", add)
        raise StoreError("the connection is lost")

    monkeypatch.setattr(league, "add_game", lose_answer)
    write_patiently(lambda: league.add_game_once(faulty(played(game))))
    assert league.record(game.game_id) == faulty(played(game))
    with pytest.raises(UserError, match="cup-1 is already stored"):
        league.add_game_once(played(game))
    with pytest.raises(UserError, match="bot"):
        league.add_game_once(replace(played(other), seating=(BotId("new", "1"),) * 3))


def test_patient_write_raises_errors_of_the_user_at_once():
    tries = []

    def write():
        tries.append(1)
        raise UserError("'anna' is the name of a bot")

    with pytest.raises(UserError, match="anna"):
        write_patiently(write)
    assert len(tries) == 1


def test_two_bots_may_have_the_same_content(league):
    add_bot(league, bot("ann"))
    add_bot(league, replace(bot("bob"), content_hash=bot("ann").content_hash))
    assert len(league.bots()) == 2


def test_a_version_is_checked_and_retired_and_checked_again(league):
    add_bot(league, bot("ann"))
    add_bot(league, bot("ann", "2.0"))
    league.mark_checked(BotId("ann", "1.0"), report="{}", at_us=5)
    league.mark_retired(BotId("ann", "1.0"), at_us=7)
    checked = replace(bot("ann"), checked_at_us=5, check_report="{}")
    assert league.bots() == [replace(checked, retired_at_us=7), bot("ann", "2.0")]
    league.mark_checked(BotId("ann", "1.0"), report="[]", at_us=9)
    assert league.bots()[0] == replace(checked, checked_at_us=9, check_report="[]")


def test_unknown_version_cannot_be_retired(league):
    with pytest.raises(UserError, match=r"ann@1\.0 is not in the league"):
        league.mark_retired(BotId("ann", "1.0"), at_us=7)


def test_a_tournament_comes_back_with_its_schedule(league):
    rows = filled(league)
    stored = league.tournament("cup")
    assert (stored.name, stored.seed, stored.config) == ("cup", SEED, '{"a": 1}')
    assert (stored.games, stored.stored) == (len(rows), 0)
    assert (stored.commitment, stored.terms) == (tournament().commitment, tournament().terms)
    assert league.schedule("cup") == rows
    assert league.tournaments() == [stored]


def test_fresh_deals_come_back_with_the_schedule(league):
    rows = filled(league, kind=Deals.FRESH)
    assert len({row.deal_id for row in rows}) == len(rows)
    assert league.schedule("cup") == rows
    assert league.missing_games("cup", limit=5) == rows[:5]


def test_two_tournaments_do_not_mix(league):
    first = filled(league)
    second = filled(league, "open", 1)
    league.add_game(played(second[0]))
    assert [row.name for row in league.tournaments()] == ["cup", "open"]
    assert [row.stored for row in league.tournaments()] == [0, 1]
    assert league.schedule("cup") == first
    assert league.schedule("open") == second
    assert league.forfeits("cup") == {}
    assert [row.tournament for row in league.results()] == ["open"]


def test_second_tournament_of_a_name_is_refused_and_leaves_nothing(league):
    rows = filled(league)
    with pytest.raises(UserError, match="'cup' is already stored"):
        league.add_tournament(tournament(), schedule())
    other = [replace(row, game_id=rows[0].game_id) for row in schedule("other")]
    with pytest.raises(UserError, match=TWICE):
        league.add_tournament(tournament("other"), other)
    assert [row.name for row in league.tournaments()] == ["cup"]
    assert league.schedule("cup") == rows


def test_a_game_comes_back_whole(league):
    rows = filled(league)
    for row, record in ((rows[0], played(rows[0])), (rows[1], faulty(played(rows[1])))):
        league.add_game(record)
        assert league.record(row.game_id) == record


def test_nothing_is_found_by_a_nul_character(league):
    league.add_game(played(filled(league)[0]))
    for find in (league.record, league.is_deal_played, league.tournament):
        with pytest.raises(NotFoundError):
            find("cup-1\0")
    assert league.games(tournament="cup\0") == []
    for choice in (
        GameChoice(ruleset="classic\0"),
        GameChoice(termination="out\0"),
        GameChoice(bot="ann\0"),
        GameChoice(bot="ann@1.0\0"),
        GameChoice(cause="crash\0"),
    ):
        assert league.find_games(choice, offset=0, limit=9) == ([], 0)


def test_a_game_is_stored_once(league):
    rows = filled(league)
    record = played(rows[0])
    league.add_game(record)
    with pytest.raises(UserError, match="cup-1 is already stored"):
        league.add_game(replace(record, duration_us=1))
    assert league.record("cup-1") == record
    assert len(league.results()) == 1


def test_game_of_an_unknown_bot_is_refused_and_leaves_nothing(league):
    rows = filled(league)
    stranger = replace(played(rows[0]), seating=(BotId("eve", "1"), *played(rows[0]).seating[1:]))
    with pytest.raises(UserError, match="bot eve@1 is not in the league"):
        league.add_game(stranger)
    assert league.results() == []
    league.add_game(played(rows[0]))
    assert set(league.forfeits("cup")) == {"cup-1"}


def test_forfeits_lists_only_stored_games(league):
    rows = filled(league)
    for row in reversed(rows[3:9]):
        league.add_game(played(row))
    league.add_game(faulty(played(rows[20])))
    league.add_game(replace(played(rows[21]), forfeited=(0, 2), ranks=(2, 1, 2)))
    stored = league.forfeits("cup")
    missing = [row.game_id for row in league.schedule("cup") if row.game_id not in stored]
    assert missing == [row.game_id for row in (*rows[:3], *rows[9:20], *rows[22:])]
    assert stored["cup-21"] == (1,)
    assert stored["cup-22"] == (0, 2)
    assert stored["cup-4"] == ()


def test_results_are_in_schedule_order_for_any_order_of_storing(league):
    rows = filled(league)
    for row in reversed(rows):
        league.add_game(played(row))
    results = league.results(tournament="cup")
    assert [result.game_id for result in results] == [row.game_id for row in rows]
    for row, result in zip(rows, results, strict=True):
        record = league.record(row.game_id)
        assert result.bots == row.bots
        assert (result.scores, result.ranks) == (record.scores, record.ranks)
        assert (result.index, result.round, result.match) == (row.index, row.round, row.match)
        assert (result.tournament, result.ruleset, result.forfeited) == ("cup", "classic", ())


def test_free_games_are_listed_only_on_request(league):
    rows = filled(league)
    league.add_game(played(rows[0]))
    league.add_game(replace(played(rows[1]), game_id="play-1"))
    assert [row.game_id for row in league.results()] == ["cup-1"]
    with_free = league.results(free=True)
    assert [(row.game_id, row.tournament, row.round) for row in with_free] == [
        ("cup-1", "cup", 1),
        ("play-1", "", 0),
    ]
    assert league.tournament("cup").stored == 1
    assert league.record("play-1").game_id == "play-1"
    assert [row.game_id for row in league.games()] == ["cup-1", "play-1"]


def test_games_of_each_bot_are_counted_with_free_games(league):
    rows = filled(league)
    league.add_games(map(played, rows[:3]))
    league.add_game(replace(played(rows[3]), game_id="free"))
    stored = Counter(bot for game in league.results(free=True) for bot in game.bots)
    assert len(league.results(free=True)) == 4
    assert league.game_counts() == stored


def test_progress_has_the_stored_games_of_each_round(league):
    rows = filled(league)
    filled(league, "other")
    league.add_games(map(played, rows[1:4]))
    league.add_game(replace(played(rows[0]), game_id="free"))
    rounds = sorted({row.round for row in rows})
    assert league.progress("cup") == [
        RoundProgress(
            number,
            sum(row.round == number for row in rows),
            done := sum(row.round == number for row in rows[1:4]),
            done * played(rows[0]).duration_us,
        )
        for number in rounds
    ]
    assert league.progress("nothing") == []


def test_missing_games_are_the_first_ones_of_the_schedule(league):
    rows = filled(league)
    filled(league, "other")
    league.add_games(map(played, (rows[0], rows[2])))
    assert league.missing_games("cup", limit=3) == [rows[1], rows[3], rows[4]]
    assert league.missing_games("cup", limit=1_000) == [rows[1], *rows[3:]]
    league.add_games(map(played, (rows[1], *rows[3:])))
    assert league.missing_games("cup", limit=3) == []


def test_last_missing_game_finishes_the_tournament(league):
    rows = filled(league)
    filled(league, "open", 1)
    for row in reversed(rows[1:]):
        league.add_game(played(row))
    league.add_game(replace(played(rows[0]), game_id="play-1"))
    assert league.tournament("cup").finished_at_us is None
    last = played(rows[0])
    league.add_game(last)
    assert league.tournament("cup").finished_at_us == last.started_at_us + last.duration_us
    assert league.tournament("open").finished_at_us is None


def test_tournament_and_extension_end_with_the_game_that_ends_last_not_the_one_stored_last(league):
    rows = filled(league)
    last = rows[-1].match
    more = [
        replace(
            row,
            index=row.index + len(rows),
            match=row.match + last,
            deal_id=f"{row.deal_id}+",
            game_id=f"{row.game_id}+",
        )
        for row in rows
    ]
    league.add_extension("cup", NewExtension(5, 1, more[0].match, b"x" * 32, "c", "t"), more)
    for games, duration_us in ((more, 7_000_000), (rows, 5_000_000)):
        first, *others = map(played, games)
        league.add_game(replace(first, duration_us=duration_us))
        league.add_games(replace(other, duration_us=1_000_000) for other in others)
    [extension] = league.extensions("cup")
    assert extension.finished_at_us == first.started_at_us + 7_000_000
    assert league.tournament("cup").finished_at_us == first.started_at_us + 5_000_000


def test_early_stop_drops_the_unplayed_games(league):
    rows = filled(league)
    others = filled(league, "other")
    first_round = [row for row in rows if row.round == 1]
    for row in first_round:
        league.add_game(replace(played(row), duration_us=row.index))
    league.add_game(played(others[0]))
    league.stop_early("cup", rounds=1, games=len(first_round))
    assert league.schedule("cup") == first_round
    assert league.schedule("other") == others
    cup, other = league.tournaments()
    assert (cup.games, cup.stored, cup.stopped_after) == (len(first_round), len(first_round), 1)
    assert cup.finished_at_us == 1_700_000_000_000_000 + len(first_round) - 1
    assert (other.stopped_after, other.finished_at_us) == (None, None)


def test_early_stop_before_a_played_game_is_refused(league):
    rows = filled(league)
    for row in rows[:5]:
        league.add_game(played(row))
    with pytest.raises(UserError, match=r"FOREIGN KEY|foreign key"):
        league.stop_early("cup", rounds=1, games=4)
    assert league.schedule("cup") == rows
    assert league.tournament("cup").stopped_after is None


def test_replaced_games_continue_the_played_ones(league):
    rows = filled(league)
    others = filled(league, "other")
    played_games = [row for row in rows if row.match == 1]
    rest = swap_bots(rows[len(played_games) : -3])
    for row in played_games:
        league.add_game(played(row))
    league.replace_games("cup", rows[len(played_games) :], rest)
    assert league.schedule("cup") == played_games + rest
    assert league.schedule("other") == others
    assert league.tournament("cup").stored == len(played_games)


def test_keys_of_unchanged_games_stay(place):
    with place.open(create=True) as league:
        rows = filled(league)
        before = dict(place.execute("SELECT name, id FROM games"))
        new = [*rows[:6], *swap_bots(rows[6:9]), *rows[9:]]
        league.replace_games("cup", rows[3:], new[3:])
        assert league.schedule("cup") == new
    after = dict(place.execute("SELECT name, id FROM games"))
    assert {name for name, key in after.items() if key != before[name]} == {
        row.game_id for row in rows[6:9]
    }


def test_matches_without_games_are_removed_with_them(place):
    with place.open(create=True) as league:
        rows = filled(league)
        league.replace_games("cup", rows[12:], rows[12:15])
        assert league.schedule("cup") == rows[:15]
        assert [row.match for row in rows[12:15]] == [5, 5, 5]
        assert place.execute("SELECT number FROM matches ORDER BY number") == [
            (number,) for number in range(1, 6)
        ]
        for row in rows[:12]:
            league.add_game(played(row))
        league.stop_early("cup", rounds=1, games=12)
    assert place.execute("SELECT max(number) FROM matches") == [(4,)]


def test_played_game_is_not_replaced(league):
    rows = filled(league)
    league.add_game(played(rows[5]))
    with pytest.raises(UserError, match=r"FOREIGN KEY|foreign key"):
        league.replace_games("cup", rows[3:], swap_bots(rows[3:]))
    assert league.schedule("cup") == rows


def test_games_are_added_all_or_none(league):
    rows = filled(league)
    league.add_game(played(rows[2]))
    with pytest.raises(UserError, match="game cup-3 is already stored"):
        league.add_games(map(played, rows[:4]))
    assert league.tournament("cup").stored == 1
    league.add_games(map(played, rows[:2]))
    assert league.tournament("cup").stored == 3


def test_summaries_of_games_are_found_by_tournament(league):
    rows = filled(league)
    filled(league, "open", 1)
    for row in rows[:6]:
        league.add_game(played(row))
    league.add_game(faulty(played(rows[7])))
    assert len(league.games(tournament="cup")) == 7
    assert league.games(tournament="open") == []
    assert len(league.games()) == 7
    crashed = league.games()[-1]
    record = league.record(rows[7].game_id)
    assert crashed.game_id == rows[7].game_id
    assert crashed.termination == record.termination.value
    assert (crashed.decisions, crashed.duration_us) == (len(record.moves), 31_000)


@pytest.mark.extended("measures large schedules and long statistics")
def test_limit_of_faults_may_exceed_the_parameters_of_a_statement(place):
    count = 66_000  # PostgreSQL accepts at most 65,535
    with place.open(create=True) as league:
        rows = filled(league)
        league.add_game(faulty(played(rows[0])))
        place.execute(
            "INSERT INTO faults"
            " (game_id, seat, cause, forfeit, move, detail, elapsed_us, stderr_tail)"
            " WITH RECURSIVE numbers(n) AS"
            " (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 66000)"
            " SELECT game_id, seat, cause, forfeit, move, detail, elapsed_us, stderr_tail"
            " FROM faults, numbers WHERE seat = 1"
        )
        faults = league.faults(limit=count)
    assert [each.fault.seat for each in faults] == [1] * count


def test_faults_come_back_with_their_evidence(league):
    rows = filled(league)
    league.add_game(played(rows[0]))
    league.add_game(faulty(played(rows[1])))
    strike, crash = league.faults(tournament="cup")
    record = league.record("cup-2")
    assert (strike.game_id, strike.bot) == ("cup-2", rows[1].bots[0])
    assert (crash.game_id, crash.bot) == ("cup-2", rows[1].bots[1])
    assert (strike.fault, crash.fault) == record.faults
    assert [strike.bot, crash.bot] == [str(record.seating[each.seat]) for each in record.faults]
    assert (strike.fault.seat, strike.fault.cause) == (0, Cause.TIMEOUT)
    assert (strike.fault.forfeit, strike.fault.evidence.elapsed_us) == (False, 77)
    assert strike.fault.evidence.detail == "too late"
    assert (crash.fault.forfeit, crash.fault.move) == (True, 1)
    assert (crash.fault.evidence.signal, crash.fault.evidence.exit_code) == ("SIGSEGV", None)
    assert crash.fault.evidence.stderr_tail == "Ouch\n"
    assert league.faults() == [strike, crash]


def test_faults_are_restricted_to_a_bot_and_to_the_newest(league):
    rows = filled(league)
    games = [rows[5], rows[1], rows[3]]
    for row in games:
        league.add_game(faulty(played(row)))
    ours = [row for row in league.faults() if row.bot == "ann@1.0"]
    assert ours
    assert league.faults(bot="ann") == league.faults(bot="ann@1.0") == ours
    assert league.faults(bot="ann@2.0") == []
    assert league.faults(tournament="open", bot="ann") == []
    newest = league.faults(limit=3)
    assert [row.game_id for row in newest] == [rows[1].game_id, rows[3].game_id, rows[3].game_id]
    assert newest == [row for row in league.faults() if row in newest]


def test_faults_are_counted_by_bot_and_cause(league):
    rows = filled(league)
    filled(league, "open", 1)
    for row in (rows[0], rows[1], rows[5]):
        league.add_game(faulty(played(row)))
    twice = faulty(played(rows[3]))
    later = [replace(fault, move=9 + fault.move) for fault in twice.faults[:1]]
    league.add_game(replace(twice, faults=(*twice.faults, *later)))
    found = league.fault_counts()
    faults = league.faults()
    assert len(faults) == 9
    assert {(each.bot, each.cause) for each in found} == {
        (each.bot, each.fault.cause) for each in faults
    }
    for each in found:
        own = [row for row in faults if (row.bot, row.fault.cause) == (each.bot, each.cause)]
        forfeits = sum(row.fault.forfeit for row in own)
        games = len({row.game_id for row in own})
        numbers = (len(own) - forfeits, forfeits, games)
        assert (each.strikes, each.forfeits, each.games) == numbers
    assert any(each.strikes > each.games for each in found)
    assert league.fault_counts(tournament="cup") == found
    assert league.fault_counts(tournament="open") == []
    ours = [each for each in found if each.bot == "ann@1.0"]
    assert ours
    assert league.fault_counts(bot="ann") == league.fault_counts(bot="ann@1.0") == ours


def test_unknown_cause_in_the_table_of_faults_is_an_error(place):
    with place.open(create=True) as league:
        league.add_game(faulty(played(filled(league)[0])))
        place.execute("UPDATE faults SET cause = 'sleepy'")
        for read in (league.faults, league.fault_counts):
            with pytest.raises(RefereeError, match=r"the table faults is damaged: .*'sleepy'"):
                read()


def test_usage_is_summed_up_over_the_games_of_a_bot(league):
    first, second = filled(league)[:2]
    bots = [each for each in first.bots if each in second.bots]
    assert bots

    def measured(game, cpu_s, peak_kib):
        usage = tuple(Usage(cpu_s, peak_kib) if bot == bots[0] else None for bot in game.bots)
        return replace(played(game), usage=usage)

    league.add_games([measured(first, 0.25, 3000), measured(second, 0.75, 2000)])
    (row,) = league.usage()
    assert row == StoredUsage(bots[0], 2, 500_000.0, 750_000, 2500.0, 3000)


def test_nul_in_texts_of_faults_is_escaped(league):
    rows = filled(league)
    record = faulty(played(rows[0]))
    strange = replace(record.faults[0].evidence, detail="a\0b", stderr_tail="\0\x01\U0001f0cf\\x00")
    league.add_game(replace(record, faults=(replace(record.faults[0], evidence=strange),)))
    assert league.record("cup-1").faults[0].evidence == strange
    (charged,) = league.faults()
    evidence = charged.fault.evidence
    assert (evidence.detail, evidence.stderr_tail) == (r"a\x00b", "\\x00\x01\U0001f0cf\\x00")


def test_unknown_names_are_refused_with_the_known_ones(league):
    with pytest.raises(NotFoundError, match="no tournament 'cup'; the league has no tournaments"):
        league.tournament("cup")
    filled(league)
    with pytest.raises(NotFoundError, match="no tournament 'cap'"):
        league.tournament("cap")
    with pytest.raises(NotFoundError, match="no game 'cup-1' is stored"):
        league.record("cup-1")


def test_reopened_league_has_everything(tmp_path, db):
    with League.open(tmp_path, create=True, db=db) as league:
        rows = filled(league)
        league.add_game(played(rows[0]))
    with League.open(tmp_path, create=False, db=db) as league:
        assert league.record("cup-1") == played(rows[0])
        assert {row.name for row in league.bots()} == set(NAMES)


def test_tournament_and_extensions_are_finished_separately(league):
    rows = filled(league)
    half = len(rows) // 2
    more = [
        replace(row, index=row.index + len(rows), match=row.match + rows[-1].match) for row in rows
    ]
    more = [replace(row, deal_id=f"{row.deal_id}+", game_id=f"{row.game_id}+") for row in more]
    for added in (more[:half], more[half:]):
        league.add_extension("cup", NewExtension(5, 1, added[0].match, b"x" * 32, "c", "t"), added)
    assert [row.first_match for row in league.extensions("cup")] == [
        more[0].match,
        more[half].match,
    ]
    assert [row.first_game for row in league.extensions("cup")] == [
        more[0].index,
        more[half].index,
    ]
    assert league.extensions("other") == []
    assert [row.game_id for row in league.schedule("cup")] == [
        row.game_id for row in (*rows, *more)
    ]
    assert league.tournament("cup").games == 2 * len(rows)

    def finished():
        parts = (league.tournament("cup"), *league.extensions("cup"))
        return [part.finished_at_us is not None for part in parts]

    league.add_games(map(played, more[:half]))
    assert finished() == [False, True, False]
    league.add_games(map(played, rows))
    assert finished() == [True, True, False]
    league.add_games(map(played, more[half:]))
    assert finished() == [True, True, True]


def test_hosts_are_those_of_the_newest_note_of_a_tournament_sorted_by_address(league):
    filled(league, "cup")
    filled(league, "other")
    first, second, third = (
        StoredHost(HostFigures(address, 1, 2, 3, 4), began_at_us=5, noted_at_us=6 + at)
        for at, address in enumerate(("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    )
    league.note_hosts("cup", [first])
    league.note_hosts("other", [first])
    league.note_hosts("cup", [third, second])
    assert league.hosts("cup") == [second, third]
    assert league.hosts("other") == [first]
