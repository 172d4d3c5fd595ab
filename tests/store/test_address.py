"""Test that URLs of databases are used, or refused in one line without their password."""

from __future__ import annotations

import sys

import pytest
from records import add_bot, bot

from referee.errors import UserError
from referee.store.league import League, url_without_password

FORMS = "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
AS_PERCENT = "write @ as %40, except the one before the host"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqlite:///some/league.db", "sqlite:///some/league.db"),
        ("postgresql+psycopg://ann@h/cup", "postgresql+psycopg://ann@h/cup"),
        ("postgresql+psycopg://ann:secret@h:5/cup", "postgresql+psycopg://ann:***@h:5/cup"),
        ("postgresql+psycopg:///cup?host=/run", "postgresql+psycopg:///cup?host=%2Frun"),
        (
            "postgresql+psycopg://ann@h/cup?password=secret&sslpassword=secret",
            "postgresql+psycopg://ann@h/cup",
        ),
    ],
)
def test_url_in_messages_has_no_password(text, shown):
    assert url_without_password(text) == shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("secret", f"the database must be given by a URL: {FORMS}"),
        ("", f"the database must be given by a URL: {FORMS}"),
        ("postgresql+psycopg://ann:secret@h:p/cup", f"must be given by a URL: {FORMS}"),
        ("postgresql+psycopg://ann:my@secret@h:5/cup", f"{FORMS}; {AS_PERCENT}"),
        ("postgresql+psycopg://ann:my@sec/ret@h/cup", f"{FORMS}; {AS_PERCENT}"),
        ("postgresql+psycopg://ann:my@se?cret@h/cup", f"{FORMS}; {AS_PERCENT}"),
        ("postgresql+psycopg://ann:my@se:cret@h/cup", f"{FORMS}; {AS_PERCENT}"),
        ("mysql://ann:my@secret@h/cup", f"must be given by a URL: {FORMS}"),
        (
            "postgresql://ann:secret@h/cup",
            "postgresql://ann:***@h/cup: postgresql is not supported",
        ),
        (
            "mysql://ann@h/cup?password=secret",
            f"mysql is not supported; use {FORMS}",
        ),
        ("postgresql+psycopg://ann:secret@h", "the URL must name a database"),
        ("sqlite:///secret\udcff.db", f"the URL of the database must be UTF-8: {FORMS}"),
        ("postgresql+psycopg://ann:secret@h/cup\udcff", "the URL of the database must be UTF-8"),
        ("sqlite://", "the URL must name a file and nothing else, sqlite:///FILE"),
        ("sqlite:///:memory:", "the URL must name a file"),
        ("sqlite:///league.db?mode=ro", "the URL must name a file"),
        ("sqlite://league/league.db", "the URL must name a file"),
        ("sqlite://ann@/league.db", "the URL must name a file"),
        ("sqlite://ann:secret@/league.db", "the URL must name a file"),
        ("sqlite://:5/league.db", "the URL must name a file"),
    ],
)
def test_unusable_url_is_refused_without_its_password(tmp_path, text, says):
    for create in (True, False):
        with pytest.raises(UserError) as caught:
            League.open(tmp_path / "league", create=create, db=text)
        assert says in str(caught.value)
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "where", ["localhost:1/cup", "/cup?host=/no/such/folder"], ids=["port", "socket"]
)
def test_unreachable_server_is_reported_in_one_line(tmp_path, where):
    pytest.importorskip("psycopg")
    url = f"postgresql+psycopg://ann:secret@{where}"
    with pytest.raises(
        UserError, match=r"postgresql\+psycopg://ann:\*\*\*@.*connection "
    ) as caught:
        League.open(tmp_path / "league", create=True, db=url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError):
        League.exists_at(tmp_path / "league", url)
    assert list(tmp_path.iterdir()) == []


def test_missing_driver_is_reported(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UserError, match=r"pip install 'linko-referee\[postgres\]'"):
        League.open(tmp_path, create=True, db="postgresql+psycopg://ann@h/cup")


def test_sqlite_file_outside_the_league_folder_works(tmp_path):
    db = f"sqlite:///{tmp_path / 'other.db'}"
    with League.open(tmp_path / "league", create=True, db=db) as league:
        add_bot(league, bot("ann"))
        assert (league.where, league.db) == (str(tmp_path / "other.db"), db)
    assert list((tmp_path / "league").iterdir()) == []
    assert League.exists_at(tmp_path / "nowhere", db)
    assert not League.exists_at(tmp_path / "league")
