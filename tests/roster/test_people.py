"""Test how people get an id in a league."""

import re

import pytest

from referee.errors import NotFoundError, UserError
from referee.records import BotId
from referee.roster import find_bot
from referee.roster.people import enter_person, person_id
from referee.roster.roster import SAMPLE_BOTS, Roster, create_bot
from referee.roster.workshop import Workshop
from referee.sandbox.process_group import ProcessGroupLauncher
from referee.store.league import League


@pytest.fixture
def league(tmp_path):
    with League.open(tmp_path / "league", create=True) as league:
        yield league


def roster_of(league):
    return Roster(league, Workshop(league.folder, ProcessGroupLauncher(), on_build=print))


@pytest.mark.parametrize("name", ["", "Anna", "an na", "<b>", "a" * 33, "../x"])
def test_invalid_name_of_a_person_is_refused(league, name):
    with pytest.raises(UserError, match="is not a valid name"):
        person_id(league, name)


async def test_person_cannot_have_the_name_of_a_bot(league):
    await roster_of(league).submit(SAMPLE_BOTS / "random", now_us=1)
    with pytest.raises(UserError, match="'random' is the name of a bot"):
        person_id(league, "random")
    with pytest.raises(UserError, match="'random' is the name of a bot"):
        enter_person(league, BotId("random", "person"), now_us=2)


async def test_bot_cannot_have_the_name_of_a_person(league, tmp_path):
    enter_person(league, person_id(league, "anna"), now_us=1)
    create_bot(tmp_path / "anna", name="anna", language="python", author="anna")
    with pytest.raises(UserError, match=r"bot\.toml: name: 'anna' is the name of a person"):
        await roster_of(league).submit(tmp_path / "anna", now_us=2)
    with pytest.raises(UserError, match="'anna' is the name of a person"):
        await roster_of(league).submit(tmp_path / "anna", now_us=2, any_author=True)


@pytest.mark.parametrize(
    ("key", "line"), [("version", 'version = "person"'), ("language", 'language = "person"')]
)
async def test_bot_cannot_look_like_a_person(league, tmp_path, key, line):
    create_bot(tmp_path / "anna", name="anna", language="python", author="anna")
    manifest = tmp_path / "anna" / "bot.toml"
    manifest.write_text(re.sub(rf"^{key} = .*", line, manifest.read_text(), flags=re.MULTILINE))
    for any_author in (False, True):
        with pytest.raises(UserError, match=rf"bot.toml: {key}: 'person' stands for people"):
            await roster_of(league).submit(tmp_path / "anna", now_us=2, any_author=any_author)


def test_person_enters_once_and_no_tournament_can_choose_it(league):
    anna = person_id(league, "anna")
    enter_person(league, anna, now_us=5)
    enter_person(league, person_id(league, "anna"), now_us=6)
    [row] = league.bots()
    assert (str(row.bot), row.language, row.added_at_us, row.retired_at_us) == (
        "anna@person",
        "person",
        5,
        5,
    )
    with pytest.raises(NotFoundError, match="no active version"):
        find_bot(league, "anna")
    with pytest.raises(UserError, match="anna@person is a person, not a bot"):
        roster_of(league).active_spec("anna@person")
