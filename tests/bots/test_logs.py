"""What a bot prints, and the messages of its stream, are written to files of its games."""

import asyncio
import json
import resource

import pytest

from referee.bots import BotSpec, logs
from referee.bots.logs import LogSettings
from referee.pb import play_pb2, table_pb2
from referee.records import BotId
from referee.sandbox import Limits

HELLO = play_pb2.BotMessage(hello=play_pb2.Hello(protocol_version=1, token="secret"))  # noqa: S106 - a test


@pytest.fixture
def open_log(tmp_path):
    def open_log(output_kib=1, *, messages=True):
        spec = BotSpec(
            bot=BotId("mine", "1.0+2"),
            folder=tmp_path,
            command=("bot",),
            limits=Limits(output_kib=output_kib),
        )
        return LogSettings(tmp_path / "logs", messages).open(spec)

    return open_log


@pytest.fixture
def files(tmp_path):
    """Return a function that returns the content of all files by their paths, without the times of messages."""

    def read():
        folder = tmp_path / "logs"
        return {
            str(path.relative_to(folder)): path.read_text()
            for path in folder.rglob("*")
            if path.is_file()
        }

    return read


def sent(file):
    return [
        (line["from"], line.get("message", line)) for line in map(json.loads, file.split("\n")[:-1])
    ]


def replies(*game_ids):
    action = table_pb2.Action(choice="CHOICE_PASS")
    return play_pb2.BotMessage(
        replies=[play_pb2.Reply(game_id=each, decision_id=1, action=action) for each in game_ids]
    )


def test_output_before_and_after_a_game_is_in_the_file_of_the_nearest_game(open_log, files):
    log = open_log(messages=False)
    write = log.make_writer()
    write(b"loading\n")
    log.begin("a", "cup-1")
    write(b"playing\n")
    log.end("a")
    write(b"over\n")
    log.begin("b", "cup-2")
    write(b"again\n")
    log.close()
    assert files() == {
        "cup-1/mine@1.0+2.log": "loading\nplaying\nover\n",
        "cup-2/mine@1.0+2.log": "again\n",
    }


def test_output_of_a_process_without_a_game_is_in_a_folder_of_its_own(open_log, files):
    log = open_log(messages=False)
    log.make_writer()(b"no module\n")
    log.close()
    assert files() == {"start-up/mine@1.0+2.log": "no module\n"}


def test_output_is_in_the_files_of_all_games_that_are_played(open_log, files):
    log = open_log(messages=False)
    write = log.make_writer()
    log.begin("a", "cup-1")
    log.begin("b", "cup-2")
    write(b"both\n")
    log.end("a")
    write(b"one\n")
    assert set(files().values()) == {"both\n", "both\none\n"}


def test_control_characters_are_escaped_and_a_character_may_be_split(open_log, files):
    log = open_log(messages=False)
    write, other = log.make_writer(), log.make_writer()
    log.begin("a", "cup-1")
    for chunk in (b"\x1b[31m \xc3", b"\xa4\n"):
        write(chunk)
        other(b"-")
    assert files() == {"cup-1/mine@1.0+2.log": "\\x1b[31m -ä\n-"}


def test_file_with_too_much_output_ends_with_a_note(open_log, files):
    log = open_log(messages=False)
    write = log.make_writer()
    log.begin("a", "cup-1")
    for size in (600, 424, 600, 600):
        write(b"x" * size)
    (text,) = files().values()
    assert text == "x" * 1024 + "\n(more than 1 KiB: the rest is left out)\n"


def test_endless_output_before_the_first_game_is_cut_with_a_note(open_log, files, monkeypatch):
    log = open_log(messages=False)
    write = log.make_writer()
    for _ in range(2):
        write(b"x" * 600)
    monkeypatch.setattr(logs, "printable", None)  # further output is not even decoded
    write(b"x" * 600)
    log.close()
    (text,) = files().values()
    assert text == "x" * 1024 + "\n(more than 1 KiB: the rest is left out)\n"


def test_early_output_that_just_fits_has_no_note(open_log, files):
    log = open_log(messages=False)
    write = log.make_writer()
    write(b"x" * 1024)
    log.begin("a", "cup-1")
    assert list(files().values()) == ["x" * 1024]
    write(b"y")
    assert list(files().values()) == ["x" * 1024 + "\n(more than 1 KiB: the rest is left out)\n"]


def test_limit_of_a_file_counts_bytes(open_log, files):
    log = open_log(messages=False)
    write = log.make_writer()
    log.begin("a", "cup-1")
    for _ in range(2):
        write("€".encode() * 300)
    (text,) = files().values()
    assert text == "€" * 341 + "\n(more than 1 KiB: the rest is left out)\n"


def test_second_attempt_by_the_same_process_has_the_whole_limit(open_log, files):
    log = open_log(messages=False)
    write = log.make_writer()
    for chunk in (b"x" * 2000, b"second"):
        log.begin("a", "cup-1")
        write(chunk)
        log.end("a")
    assert list(files().values()) == ["second"]


def test_output_above_the_limit_is_not_even_decoded(open_log, monkeypatch):
    log = open_log(messages=False)
    write = log.make_writer()
    log.begin("a", "cup-1")
    write(b"x" * 2000)
    monkeypatch.setattr(logs, "printable", None)
    write(b"x" * 2000)


def test_other_users_cannot_read_the_files(open_log, tmp_path):
    log = open_log()
    log.begin("a", "cup-1")
    log.make_writer()(b"x")
    log.add_message("bot", replies("a"))
    folder = tmp_path / "logs" / "cup-1"
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}


def test_games_that_nobody_plays_have_one_line_together(open_log, files):
    log = open_log()
    log.begin("a", "cup-1")
    log.add_message("bot", replies("a", *map(str, range(1000))))
    (file,) = files().values()
    assert [len(message["replies"]) for _, message in sent(file)] == [1, 1000]


def test_file_with_too_many_messages_ends_with_a_note(open_log, files, monkeypatch):
    monkeypatch.setattr(logs, "_MESSAGES_KIB", 1)
    log = open_log()
    log.begin("a", "cup-1")
    for _ in range(20):
        log.add_message("bot", replies("a"))
    lines = [json.loads(line) for line in files()["cup-1/mine@1.0+2.jsonl"].splitlines()]
    assert lines[-1] == {"note": "more than 1 KiB: the rest is left out"}
    assert 1 < len(lines) < 20


def test_second_attempt_of_a_game_replaces_the_files_of_the_first(open_log, files):
    for text in (b"first", b"second"):
        log = open_log(messages=False)
        log.begin("a", "cup-1")
        log.make_writer()(text)
    assert list(files().values()) == ["second"]


def test_bot_that_prints_nothing_has_no_file(open_log, files):
    log = open_log(messages=False)
    log.begin("a", "cup-1")
    log.end("a")
    log.close()
    assert files() == {}


def test_messages_are_split_by_game_and_the_token_is_left_out(open_log, files):
    log = open_log()
    log.add_message("bot", HELLO)
    log.begin("a", "cup-1")
    log.begin("b", "cup-2")
    log.add_message("bot", replies("a", "b"))
    log.end("a")
    ends = [play_pb2.GameEnd(game_id="a", ranks=[1, 2])]
    log.add_message("referee", play_pb2.RefereeMessage(game_ends=ends))
    found = files()
    game_a, game_b = (sent(found[f"cup-{number}/mine@1.0+2.jsonl"]) for number in (1, 2))
    assert [sender for sender, _ in game_a] == ["bot", "bot", "referee"]
    assert "hello" in game_a[0][1]
    assert [reply["game_id"] for reply in game_a[1][1]["replies"]] == ["a"]
    assert game_a[2][1] == {"game_ends": [{"game_id": "a", "ranks": [1, 2]}]}
    assert [reply["game_id"] for _, message in game_b for reply in message["replies"]] == ["b"]


def test_message_of_no_game_is_in_the_files_of_all_games(open_log, files):
    log = open_log()
    log.begin("a", "cup-1")
    log.begin("b", "cup-2")
    log.add_message("bot", replies("other"))
    log.add_message("bot", b"\x99")
    found = files()
    for number in (1, 2):
        unknown, broken = sent(found[f"cup-{number}/mine@1.0+2.jsonl"])
        assert unknown[1]["replies"][0]["game_id"] == "other"
        assert broken[1]["bytes"] == "99"


class FakeStream:
    def __init__(self, *received):
        self.received = list(received)
        self.written = []

    async def read(self):
        return self.received.pop(0)

    async def write(self, data):
        self.written.append(data)

    def peer(self):
        return "unix:"


async def test_stream_is_passed_on_unchanged_and_written_down(open_log, files):
    log = open_log()
    goodbye = play_pb2.RefereeMessage(goodbye=play_pb2.Goodbye()).SerializeToString()
    stream = FakeStream(HELLO.SerializeToString(), b"\x99", "EOF")
    logged = log.wrap(stream)
    log.begin("a", "cup-1")
    assert [await logged.read() for _ in range(3)] == [HELLO.SerializeToString(), b"\x99", "EOF"]
    assert not files(), "the session handles a message before the log does"
    await asyncio.sleep(0)
    await logged.write(goodbye)
    await asyncio.sleep(0)
    assert stream.written == [goodbye]
    assert logged.peer() == "unix:"
    lines = sent(files()["cup-1/mine@1.0+2.jsonl"])
    assert [sender for sender, _ in lines] == ["bot", "bot", "referee"]
    assert lines[0][1]["hello"]["token"] == "(left out)"  # noqa: S105 - the same


async def test_messages_are_logged_in_the_order_of_the_conversation(open_log, files):
    log = open_log()
    log.begin("a", "cup-1")
    received = asyncio.Queue()
    already_logged = []

    class WatchedStream(FakeStream):
        async def write(self, data):
            already_logged.append([sender for sender, _ in sent(*files().values())])
            await super().write(data)

    logged = log.wrap(WatchedStream(replies("a").SerializeToString(), "EOF"))

    async def read():
        while (data := await logged.read()) != "EOF":
            received.put_nowait(data)

    async def write_next_request():
        await received.get()
        end = play_pb2.GameEnd(game_id="a", ranks=[1, 2])
        await logged.write(play_pb2.RefereeMessage(game_ends=[end]).SerializeToString())

    await asyncio.gather(write_next_request(), read())
    await asyncio.sleep(0)
    assert already_logged == [["bot"]], "a message is sent before it is logged"
    assert [sender for sender, _ in sent(*files().values())] == ["bot", "referee"]


async def test_reply_that_comes_before_the_write_is_over_is_logged_after_its_request(
    open_log, files
):
    log = open_log()
    log.begin("a", "cup-1")
    is_written = asyncio.Event()

    class SlowStream(FakeStream):
        async def write(self, data):
            await super().write(data)
            await is_written.wait()

    logged = log.wrap(SlowStream(replies("a").SerializeToString()))
    request = play_pb2.Request(game_id="a", decision_id=1)
    message = play_pb2.RefereeMessage(requests=[request]).SerializeToString()
    write = asyncio.ensure_future(logged.write(message))
    await asyncio.sleep(0)
    await logged.read()
    await asyncio.sleep(0)
    is_written.set()
    await write
    assert [sender for sender, _ in sent(*files().values())] == ["referee", "bot"]


def test_stream_without_messages_in_the_log_is_not_wrapped(open_log):
    stream = FakeStream()
    assert open_log(messages=False).wrap(stream) is stream


def test_full_disk_ends_the_log_and_nothing_else(open_log, tmp_path, files):
    log = open_log(messages=False)
    write = log.make_writer()
    (tmp_path / "logs").write_text("a file, not a folder")
    log.begin("a", "cup-1")
    write(b"lost")
    (tmp_path / "logs").unlink()
    write(b"lost too")
    assert files() == {}


def test_disk_that_gets_full_in_a_message_leaves_whole_lines(open_log, tmp_path, files):
    log = open_log()
    log.begin("a", "cup-1")
    log.add_message("bot", replies("a"))
    (whole,) = files().values()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, limits[1]))
    try:
        log.add_message("bot", replies("a"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.add_message("bot", replies("a"))
    assert list(files().values()) == [whole]
    path = tmp_path / "logs" / "cup-1" / "mine@1.0+2.jsonl"
    assert log._settings.errors == [f"{path}: File too large"]


def test_name_of_a_game_is_made_safe_for_a_file_system(open_log, files):
    log = open_log(messages=False)
    log.begin("a", '../duel (ghost_snatch = "optional")-1')
    log.make_writer()(b"x")
    assert list(files()) == [".._duel_ghost_snatch_optional_-1/mine@1.0+2.log"]
