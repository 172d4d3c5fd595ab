"""Which of these tests run always: the others take long, and REFEREE_THOROUGH=1 asks for them."""

from battered import THOROUGH


def pytest_collection_modifyitems(config, items):
    if THOROUGH:
        return
    left = [item for item in items if item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
