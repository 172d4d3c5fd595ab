"""`prefix` and `number_field` write the same bytes as protobuf."""

from __future__ import annotations

import pytest

from referee.pb import play_pb2, table_pb2
from referee.protocol.view_bytes import number_field, prefix


@pytest.mark.parametrize("length", [1, 127, 128, 300, 16_383, 16_384, 2_100_000])
def test_prefix_equals_the_bytes_that_protobuf_writes_before_a_text(length):
    text = "x" * length
    message = play_pb2.Goodbye(reason=text)
    assert prefix(1)(length) + text.encode() == message.SerializeToString()


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2_000_000, 2**32 - 1])
def test_number_field_equals_the_bytes_of_protobuf(number):
    message = play_pb2.Reply(decision_id=number)
    assert number_field(2)(number) == message.SerializeToString()


def test_fields_above_fifteen_have_longer_tags():
    assert prefix(16)(5) == bytes((0x82, 0x01, 5))


def test_packed_counts_below_128_have_one_byte_each():
    counts = list(range(113, 128))
    assert prefix(2)(15) + bytes(counts) == table_pb2.View(hand=counts).SerializeToString()
