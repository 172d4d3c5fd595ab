"""The event log gives each seat every event once, in order and redacted."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from referee.match.play import EventLog
from referee.rules.events import Drawn, Left, Taken, is_private, redact
from referee.rules.ruleset import HIDDEN, Layer

SEATS = 3
EVENTS = st.one_of(
    st.builds(Drawn, st.integers(0, SEATS - 1), st.none(), st.tuples(st.integers(1, 14))),
    st.builds(Drawn, st.integers(0, SEATS - 1), st.integers(0, 5), st.just((3,))),
    st.builds(Left, st.integers(0, SEATS - 1)),
    st.builds(Taken, st.integers(0, SEATS - 1), st.just(Layer(5, 2, 1))),
)


@given(st.lists(st.lists(EVENTS, max_size=4)), st.randoms(use_true_random=False))
def test_every_seat_gets_every_event_once_in_order_and_redacted(batches, chance: random.Random):
    log = EventLog(SEATS)
    received = [[] for _ in range(SEATS)]
    for events in batches:
        log.add(events)
        for seat in chance.sample(range(SEATS), chance.randrange(SEATS + 1)):
            received[seat] += log.take(seat)
    for seat in range(SEATS):
        received[seat] += log.take(seat)
        assert log.take(seat) == ()
        assert received[seat] == [redact(event, seat) for events in batches for event in events]


def test_only_the_seat_that_draws_from_the_deck_sees_the_card():
    log, card = EventLog(SEATS), Drawn(1, None, (7,))
    assert is_private(card)
    log.add((Left(0), card))
    assert [log.take(seat)[1].cards for seat in range(SEATS)] == [(HIDDEN,), (7,), (HIDDEN,)]
