"""`find_lone_action` reads a message as protobuf does, or leaves it to protobuf."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.pb import play_pb2, table_pb2
from referee.protocol import messages, view_bytes
from referee.rules.actions import Choice

GAME, NUMBER = "9f86d081884c7d65", 300
ACTIONS = st.one_of(
    st.builds(
        lambda value, naturals, jokers: table_pb2.Action(
            play=table_pb2.Layer(value=value, naturals=naturals, jokers=jokers)
        ),
        *[st.integers(0, 20)] * 3,
    ),
    st.builds(
        lambda slot, cards: table_pb2.Action(
            draw_display=table_pb2.DrawDisplay(slot=slot, cards=cards)
        ),
        st.integers(0, 2**32 - 1),
        st.lists(st.integers(0, 20), max_size=90),
    ),
    st.sampled_from([table_pb2.Action(), table_pb2.Action(choice=table_pb2.CHOICE_LEAVE)]),
)


def reply(action: table_pb2.Action, game: str = GAME, number: int = NUMBER) -> bytes:
    message = play_pb2.Reply(game_id=game, decision_id=number, action=action)
    return play_pb2.BotMessage(replies=[message]).SerializeToString()


@given(ACTIONS, st.text(max_size=20), st.integers(1, 2**32 - 1))
def test_action_of_a_lone_reply_is_found(action, game, number):
    data = reply(action, game, number)
    written = action.SerializeToString()
    is_small = len(data) < 2 + 128  # larger messages are left to protobuf
    read = messages.find_lone_action(data, game, number)
    if game:  # protobuf does not write an empty id
        assert read == (written if is_small else None)


@given(ACTIONS)
def test_reply_to_another_decision_is_not_found(action):
    for game, number in (("9f86d081884c7d66", NUMBER), (GAME, NUMBER + 1), (GAME[:-1], NUMBER)):
        assert messages.find_lone_action(reply(action), game, number) is None


@st.composite
def damaged_replies(draw):
    """Return a reply with some of its bytes changed, removed or added."""
    data = bytearray(reply(draw(ACTIONS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@given(damaged_replies())
def test_action_that_is_found_in_damaged_bytes_is_what_protobuf_reads(data):
    action = messages.find_lone_action(data, GAME, NUMBER)
    if action is None:
        return
    expected = play_pb2.Reply(game_id=GAME, decision_id=NUMBER)
    try:
        expected.action.MergeFromString(action)
    except Exception:  # noqa: BLE001 - any error: then the whole message is invalid, too
        with pytest.raises(ValueError, match=r"no linko\.v1\.BotMessage"):
            messages.parse_bot_message(data)
    else:
        expected.action.SetInParent()
        assert messages.parse_bot_message(data) == play_pb2.BotMessage(replies=[expected])


@pytest.mark.parametrize("cards", range(120))
def test_action_of_a_truncated_reply_is_not_found(cards):
    data = reply(table_pb2.Action(draw_display=table_pb2.DrawDisplay(cards=[1] * cards)))
    assert messages.find_lone_action(data[:-1], GAME, NUMBER) is None


def test_bytes_that_are_no_action_raise_value_error():
    with pytest.raises(ValueError, match=r"no linko\.v1\.Action"):
        messages.parse_action(b"\xff", None)


def test_long_actions_are_not_kept_in_memory():
    """A bot may add unknown fields to a legal action."""
    unknown_head = view_bytes.prefix(99)(50_002)
    tracemalloc.start()
    try:
        for number in range(200):
            unknown = unknown_head + number.to_bytes(2, "big") + bytes(50_000)
            leave = table_pb2.Action(choice=table_pb2.CHOICE_LEAVE).SerializeToString()
            assert messages.parse_action(leave + unknown, None) is Choice.LEAVE
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1 << 20
