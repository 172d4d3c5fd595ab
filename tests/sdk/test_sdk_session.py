"""`Session` handles the messages of the referee without a stream."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import pytest
from scripted_referee import game_ends, game_starts, requests

from referee.pb import play_pb2, table_pb2
from referee.sdk import Bot, Choice, DrawDisplay, Layer, Play, Request, Session, SnatchGhost


def slots(answer):
    return [(reply.game_id, reply.action.draw_display.slot) for reply in answer.replies]


def test_function_is_a_bot():
    session = Session(lambda request: request.legal[-1])
    session.receive(game_starts("g"))
    assert slots(session.receive(requests(("g", 1)))) == [("g", 2)]


def test_bot_may_return_a_new_action_or_a_message():
    actions = iter([DrawDisplay(1), table_pb2.Action(choice=table_pb2.CHOICE_DRAW_DECK)])
    session = Session(lambda _: next(actions))
    session.receive(game_starts("g"))
    assert slots(session.receive(requests(("g", 1)))) == [("g", 1)]
    (reply,) = session.receive(requests(("g", 2))).replies
    assert reply.action.choice == table_pb2.CHOICE_DRAW_DECK


def test_every_game_has_its_own_instance_from_start_to_end():
    lives = []

    class Diary(Bot):
        def start(self, game):
            self.diary = [f"start {game.id}"]
            lives.append(self.diary)

        def decide(self, request):
            self.diary.append(f"decide {request.game.id} {request.message.decision_id}")
            return request.legal[0]

        def end(self, result):
            self.diary.append(f"end {result.game.id} {result.ranks}")

    session = Session(Diary)
    session.receive(game_starts("a", "b"))
    session.receive(requests(("b", 1), ("a", 2)))
    session.receive(game_ends("a"))
    session.receive(game_starts("c"))
    session.receive(requests(("b", 3)))
    session.receive(game_ends("b", "c"))
    assert lives == [
        ["start a", "decide a 2", "end a (1, 2)"],
        ["start b", "decide b 1", "decide b 3", "end b (1, 2)"],
        ["start c", "end c (1, 2)"],
    ]


def test_decide_batch_gets_all_requests_of_a_message_with_the_instance_of_each_game():
    batches = []

    class Batch(Bot):
        def start(self, game):
            self.offset = len(game.id)

        @classmethod
        def decide_batch(cls, requests):
            batches.append([request.game.id for request in requests])
            return [request.legal[request.bot.offset] for request in requests]

    session = Session(Batch)
    session.receive(game_starts("", "g", "gg"))
    answer = session.receive(requests(("gg", 1), ("", 2), ("g", 3)))
    assert slots(answer) == [("gg", 2), ("", 0), ("g", 1)]
    assert batches == [["gg", "", "g"]]


def test_unknown_kind_of_decision_gets_the_first_legal_action():
    session = Session(lambda request: request.legal[-1])
    session.receive(game_starts("a", "b"))
    message = requests(("a", 1), ("b", 2))
    message.requests[0].kind = 1000
    assert slots(session.receive(message)) == [("a", 0), ("b", 2)]
    del message.requests[1]
    assert slots(session.receive(message)) == [("a", 0)]


def test_events_of_a_request_of_unknown_kind_come_with_the_next_one_or_the_result():
    seen = []

    class Remembering(Bot):
        def decide(self, request):
            seen.append((request.game.id, [event.seat for event in request.events]))
            return request.legal[0]

        def end(self, result):
            seen.append((result.game.id, [event.seat for event in result.events]))

    def passed(message, seat):
        for part in (*message.requests, *message.game_ends):
            part.events.add(passed={"seat": seat})
        return message

    def of_unknown_kind(message):
        for request in message.requests:
            request.kind = 1000
        return message

    session = Session(Remembering)
    session.receive(game_starts("a", "b"))
    session.receive(of_unknown_kind(passed(requests(("a", 1), ("b", 1)), 1)))
    session.receive(of_unknown_kind(passed(requests(("a", 2)), 2)))
    session.receive(passed(requests(("a", 3)), 3))
    session.receive(passed(requests(("a", 4)), 4))
    session.receive(passed(game_ends("b"), 5))
    assert seen == [("a", [1, 2, 3]), ("a", [4]), ("b", [1, 5])]


def test_game_end_and_goodbye_get_an_empty_answer():
    session = Session(lambda request: request.legal[0])
    session.receive(game_starts("g"))
    assert session.receive(game_ends("g")) == play_pb2.BotMessage()
    goodbye = play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye())
    assert session.receive(goodbye) == play_pb2.BotMessage()


def test_bot_that_is_neither_subclass_nor_function_is_refused():
    with pytest.raises(TypeError, match=r"int is no subclass of referee\.sdk\.Bot"):
        Session(int)
    with pytest.raises(TypeError, match="3 is neither a subclass of"):
        Session(3)


@pytest.mark.parametrize("kind", [lambda method: method, staticmethod])
def test_decide_batch_that_is_no_class_method_is_refused(kind):
    bot = type("Mixed", (Bot,), {"decide_batch": kind(lambda requests: requests)})
    with pytest.raises(TypeError, match="Mixed: decide_batch is no class method; write @class"):
        Session(bot)


def test_decide_batch_may_be_a_generator():
    class Lazy(Bot):
        @classmethod
        def decide_batch(cls, requests):
            yield from (request.legal[0] for request in requests)

    session = Session(Lazy)
    session.receive(game_starts("a", "b"))
    assert slots(session.receive(requests(("a", 1), ("b", 2)))) == [("a", 0), ("b", 0)]


def test_wrong_return_values_of_a_bot_are_refused():
    silent = Session(lambda _: None)
    silent.receive(game_starts("g"))
    with pytest.raises(TypeError, match="the bot returned None, which is no action"):
        silent.receive(requests(("g", 1)))

    class Short(Bot):
        @classmethod
        def decide_batch(cls, requests):
            return [request.legal[0] for request in requests[1:]]

    short = Session(Short)
    short.receive(game_starts("g"))
    with pytest.raises(ValueError, match="it got 1 and returned 0"):
        short.receive(requests(("g", 1)))

    empty = Session(type("Empty", (Bot,), {"decide_batch": classmethod(lambda *_: None)}))
    empty.receive(game_starts("g"))
    with pytest.raises(TypeError, match="decide_batch returned None; it must return one action"):
        empty.receive(requests(("g", 1)))

    undecided = Session(type("Undecided", (Bot,), {}))
    undecided.receive(game_starts("g"))
    with pytest.raises(NotImplementedError, match="Undecided has neither decide nor decide_batch"):
        undecided.receive(requests(("g", 1)))


@pytest.mark.parametrize(
    "action",
    [Play((7, 1, 0)), Play(Layer(7, 1.5)), DrawDisplay(-1), DrawDisplay("1"), SnatchGhost(-1)],
    ids=str,
)
def test_action_with_wrong_content_is_refused_by_name(action):
    session = Session(lambda _: action)
    session.receive(game_starts("g"))
    refusal = re.escape(f"the bot returned {action}, which is no action")
    with pytest.raises(TypeError, match=refusal):
        session.receive(requests(("g", 1)))


def test_random_numbers_of_a_game_do_not_depend_on_other_games():
    drawn = []

    def decide(request):
        drawn.append((request.game.id, request.game.random.random()))
        return request.legal[0]

    for order in (("a", "b", "a", "b"), ("b", "b", "a", "a")):
        session = Session(decide)
        session.receive(game_starts("a", "b"))
        for number, game_id in enumerate(order):
            session.receive(requests((game_id, number)))
    first, second = sorted(drawn[:4]), sorted(drawn[4:])
    assert first == second
    assert len(set(first)) == 4


def test_legal_actions_are_decoded_only_when_read():
    """The message has nothing but a list of legal actions, of which only the last can be read."""

    class OnlyTheLast(list):
        def __getitem__(self, index):
            assert index == -1
            return super().__getitem__(index)

        def __iter__(self):
            raise AssertionError

    last = table_pb2.Action(choice=table_pb2.CHOICE_PASS)
    message = SimpleNamespace(legal=OnlyTheLast([None, None, last]))
    request = Request(message, game=None, bot=Bot())
    assert request.legal[-1] is Choice.PASS
    assert len(request.legal) == 3


def test_legal_actions_are_a_sequence():
    session = Session(lambda request: seen.append(request) or request.legal[0])
    seen = []
    session.receive(game_starts("g"))
    session.receive(requests(("g", 1)))
    legal = seen[0].legal
    assert list(legal) == [DrawDisplay(0, (1,)), DrawDisplay(1, (2,)), DrawDisplay(2, (3,))]
    assert legal[1:] == (DrawDisplay(1, (2,)), DrawDisplay(2, (3,)))
    assert DrawDisplay(1, (2,)) in legal
    assert Play not in legal
    assert seen[0].plays == ()
    with pytest.raises(IndexError):
        legal[3]


def test_slow_decisions_are_sent_before_the_next_ones():
    slow = iter((False, True, False, False))

    def decide(request):
        if next(slow):
            time.sleep(0.06)
        return request.legal[0]

    session = Session(decide)
    session.receive(game_starts(*"abcd"))
    message = requests(*((game, 1) for game in "abcd"))
    parts = list(session.receive_in_parts(message))
    assert [[reply.game_id for reply in part.replies] for part in parts] == [
        ["a", "b"],
        ["c", "d"],
    ]


def test_replies_are_sent_before_the_bot_hears_of_ended_games():
    told = []

    class Learns(Bot):
        def decide(self, request):
            return request.legal[0]

        def end(self, result):
            told.append(result.game.id)

    session = Session(Learns)
    session.receive(game_starts("a", "b"))
    message = requests(("a", 1))
    message.MergeFrom(game_ends("b"))
    message.MergeFrom(game_starts("c"))
    parts = session.receive_in_parts(message)
    first = next(parts)
    assert [reply.game_id for reply in first.replies] == ["a"]
    assert [ready.game_id for ready in first.ready] == ["c"]
    assert told == []
    assert list(parts) == [play_pb2.BotMessage()]
    assert told == ["b"]


def test_bot_that_exits_when_it_hears_of_an_ended_game_has_not_said_that_it_is_ready_for_another():
    class Tired(Bot):
        def decide(self, request):
            return request.legal[0]

        def end(self, _result):
            raise SystemExit

    session, said = Session(Tired), []
    session.receive(game_starts("a"))
    message = game_ends("a")
    message.MergeFrom(game_starts("b"))
    with pytest.raises(SystemExit):
        said.extend(session.receive_in_parts(message))
    assert said == []
