import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """Where the league's database is, as `League.open` takes it: each test on both kinds."""
    if request.param == "sqlite":
        return None
    return request.getfixturevalue("postgres_url")
