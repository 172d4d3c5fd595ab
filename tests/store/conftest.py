"""Run each test that uses the fixture `db` or `place` on SQLite and on PostgreSQL."""

import pytest
from places import Place

ON_A_SERVER = pytest.param("postgresql", marks=pytest.mark.extended("needs a PostgreSQL server"))


@pytest.fixture(params=["sqlite", ON_A_SERVER])
def db(request):
    if request.param == "sqlite":
        return None
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def place(tmp_path, db):
    return Place(tmp_path / "league", db)
