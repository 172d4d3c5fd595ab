"""Which Dask workers may play, and what the driver says about the others."""

from __future__ import annotations

import asyncio
from operator import ge

import pytest
from fake_client import HERE, prepared, preparing, settle

from referee.cluster import dask_workers
from referee.errors import Shortage, UserError


@pytest.mark.parametrize(
    ("packages", "reason"),
    [
        (
            HERE | {"linko-referee": "0.1.0"},
            "it has the referee 0.1.0, but the driver has 0.2.0; install 0.2.0 there",
        ),
        (
            HERE | {"linko-referee": None},
            "it has the referee None, but the driver has 0.2.0; install 0.2.0 there",
        ),
        (
            HERE | {"python": "3.12.1.final.0"},
            "it has Python 3.12, but the driver has 3.11; install 3.11 there",
        ),
    ],
)
async def test_worker_with_another_version_is_refused_with_both_versions(
    client, said, packages, reason
):
    client.join("tcp://w:1", packages)
    with pytest.raises(UserError, match=reason):
        async with prepared(client, said):
            pass
    assert said == []  # the error tells it


async def test_worker_with_another_bug_fix_release_of_python_plays(client, said):
    client.join("tcp://w:1", HERE | {"python": "3.11.2.final.0"})
    async with prepared(client, said) as workers:
        assert list(workers.ready) == ["tcp://w:1"]


async def test_reasons_are_listed_by_host_if_no_worker_can_play(client, said):
    refusal = UserError("isolation 'full': no user namespaces")
    client.join("tcp://v:1", deploy=refusal)
    client.join("tcp://v:2", deploy=refusal)
    client.join("tcp://w:1", deploy=("b@2",), add_bot="one\ntwo")
    client.join("tcp://x:1", deploy=OSError("No space left on device"))
    with pytest.raises(UserError) as error:
        async with prepared(client, said):
            pass
    assert error.value.args == (
        "no worker can play:",
        "v: isolation 'full': no user namespaces",
        "w: b@2 cannot be built: one",
        "w: two",
        "x: OSError: No space left on device",
    )
    assert said == []


async def test_reasons_of_many_hosts_are_cut_after_a_whole_host(client, said):
    for number in range(30):
        client.join(f"tcp://h{number}:1", deploy=UserError(f"one\ntwo of {number}"))
    with pytest.raises(UserError) as error:
        async with prepared(client, said):
            pass
    assert len(error.value.args) == 18
    assert error.value.args[-2:] == ("h7: two of 7", "and 22 more hosts")


async def test_long_reason_is_cut_before_its_end(client, said):
    for number in range(3):
        reason = UserError("\n".join(map(str, range(20 - number))))
        client.join(f"tcp://h{number}:1", deploy=reason)
    with pytest.raises(UserError) as error:
        async with prepared(client, said):
            pass
    lines = [*range(5), "… 5 lines left out …", *range(10, 20)]
    assert error.value.args == (
        "no worker can play:",
        *(f"h0: {line}" for line in lines),
        "and 2 more hosts",
    )


async def test_one_host_left_out_is_written_in_the_singular(client, said):
    for number in range(3):
        client.join(f"tcp://h{number}:1", deploy=UserError("\n".join("abcdefg")))
    with pytest.raises(UserError) as error:
        async with prepared(client, said):
            pass
    assert error.value.args[-2:] == ("h1: g", "and 1 more host")


async def test_worker_that_cannot_play_is_named_if_another_can(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=UserError("isolation 'full': no user namespaces"))
    client.join("tcp://w:2", deploy=OSError("No space left on device"))
    refused = "cannot play: isolation 'full': no user namespaces"
    async with prepared(client, said):
        assert said == [
            f"The worker tcp://w:1 {refused}",
            "The worker tcp://w:2 cannot play yet: OSError: No space left on device",
        ]
        client.join("tcp://w:3", deploy=UserError("isolation 'full': no user namespaces"))
        await settle()
        assert said[2:] == [f"The worker tcp://w:3 {refused}"]


async def test_only_missing_bots_are_sent(client, said):
    client.join("tcp://w:1", deploy=("b@2",))
    async with prepared(client, said):
        sent = [call for call in client.calls if call[1] == "add_bot"]
    assert sent == [("tcp://w:1", "add_bot", "s", "b@2", "<b@2>")]


async def test_worker_is_ready_when_its_bots_are_built(client, said):
    built = asyncio.get_running_loop().create_future()
    client.join("tcp://w:1", deploy=("b@2",), add_bot=built)
    async with preparing(client, said) as workers:
        waiting = asyncio.ensure_future(workers.wait_until_ready())
        await settle()
        assert not waiting.done()
        built.set_result(None)
        await waiting
        assert list(workers.ready) == ["tcp://w:1"]
    assert said == []


@pytest.mark.parametrize(
    ("silent", "awaited"), [(1, "tcp://w:1"), (3, "tcp://w:1 and 2 more"), (0, None)]
)
async def test_first_workers_that_are_not_ready_for_long_are_named_once(
    client, said, monkeypatch, silent, awaited
):
    monkeypatch.setattr(dask_workers, "_AWAITED_S", 0.3)
    client.join("tcp://w:0")
    for number in range(1, silent + 1):
        client.join(f"tcp://w:{number}", deploy=asyncio.get_running_loop().create_future())
    async with preparing(client, said):
        await asyncio.sleep(0.6)
    assert said == [
        f"No game begins before these workers are ready: {awaited}. They may be building bots; end a worker that hangs."
    ] * bool(silent)


async def test_first_workers_are_not_named_after_a_drain(client, said, monkeypatch):
    monkeypatch.setattr(dask_workers, "_AWAITED_S", 0.3)
    client.join("tcp://w:0", deploy=asyncio.get_running_loop().create_future())
    async with preparing(client, said) as workers:
        workers.drain()
        await asyncio.sleep(0.6)
    assert said == []


async def test_more_workers_than_lanes_are_reported_once(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with prepared(client, said, lanes=2) as workers:
        assert said == []
        for number in (2, 3):
            client.join(f"tcp://w:{number}")
            for _ in range(100):
                await asyncio.sleep(0)
        assert len(workers.ready) == 4
        [sentence] = said
        assert "more workers than lanes (2)" in sentence


async def test_workers_that_come_and_go_without_an_event_are_noticed(client, said):
    client.join("tcp://w:0")
    async with prepared(client, said) as workers:
        lost = workers.ready["tcp://w:0"].lost
        client.tell = lambda _event: None
        client.join("tcp://w:1")
        client.lose("tcp://w:0")
        async with asyncio.timeout(5):
            await lost
        await settle()
        assert list(workers.ready) == ["tcp://w:1"]


async def test_worker_with_a_passing_error_plays_as_soon_as_it_can(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=("b@2",), add_bot=OSError("No space left on device"))
    async with prepared(client, said, lanes=2) as workers:
        async with asyncio.timeout(5):
            while len([call for call in client.calls if call[1] == "add_bot"]) < 3:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        assert said == ["The worker tcp://w:1 cannot play yet: OSError: No space left on device"]
        client.answers["tcp://w:1"] = {}
        async with asyncio.timeout(5):
            while len(workers.ready) < 2:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)


async def test_message_of_a_shortage_has_no_name_of_a_class(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=Shortage("host: no room for another process"))
    async with prepared(client, said):
        assert said == ["The worker tcp://w:1 cannot play yet: host: no room for another process"]


async def test_worker_that_cannot_play_is_prepared_once(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=("b@2",), add_bot="go: command not found")
    async with prepared(client, said):
        await asyncio.sleep(0.15)  # some comparisons
    assert len([call for call in client.calls if call[1] == "add_bot"]) == 1


async def test_no_worker_plays_with_an_unexpected_error(client, said):
    client.join("tcp://w:0", deploy=OSError("No space left on device"))
    with pytest.raises(UserError, match="w: OSError: No space left on device"):
        async with prepared(client, said):
            pass


async def test_scheduler_that_is_gone_is_not_waited_for_at_the_end(client, said):
    client.join("tcp://w:0")
    client.answers["tcp://w:0"]["leave"] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(5), prepared(client, said):
        asyncio.get_running_loop().call_later(0.1, setattr, client, "status", "connecting")


async def test_all_workers_are_left_at_the_end(client, said):
    for number in range(2):
        client.join(f"tcp://w:{number}")
    async with prepared(client, said):
        pass
    left = [call for call in client.calls if call[1] == "leave"]
    assert left == [("tcp://w:0", "leave", "s"), ("tcp://w:1", "leave", "s")]


async def test_no_worker_is_prepared_after_it_was_left(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=OSError("No space left on device"))
    client.answers["tcp://w:0"]["leave"] = left = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.15, left.set_result, None)  # after some comparisons
    async with asyncio.timeout(5), prepared(client, said):
        client.calls.clear()
    assert [call[:2] for call in client.calls] == [("tcp://w:0", "leave"), ("tcp://w:1", "leave")]


@pytest.mark.parametrize("is_leaving", [False, True])
async def test_silent_worker_is_not_awaited_for_long_after_a_kill(
    client, said, monkeypatch, is_leaving
):
    monkeypatch.setattr(dask_workers, "_KILL_S", 0.01)
    client.join("tcp://w:0")
    for name in ("kill", "leave"):
        client.answers["tcp://w:0"][name] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(5), prepared(client, said) as workers:
        if is_leaving:
            asyncio.get_running_loop().call_later(0.05, workers.kill)
        else:
            workers.kill()
    assert {call[1] for call in client.calls} >= {"kill", "leave"}


async def test_worker_that_comes_after_a_kill_is_not_prepared(client, said):
    client.join("tcp://w:0")
    async with prepared(client, said) as workers:
        workers.kill()
        client.join("tcp://w:1")
        await settle()
        assert list(workers.ready) == ["tcp://w:0"]
    assert all(call[0] == "tcp://w:0" for call in client.calls)


async def test_kill_reaches_a_worker_that_was_refused(client, said):
    """It may still play a stretch that was sent before a break of the driver's link."""
    client.join("tcp://w:0", deploy=("b@2",), add_bot="go: command not found")
    client.join("tcp://w:1")
    async with prepared(client, said) as workers:
        workers.kill()
        await settle()
        assert ("tcp://w:0", "kill", "s") in client.calls


async def test_no_worker_is_prepared_after_a_drain(client, said):
    client.join("tcp://w:0")
    client.join("tcp://w:1", deploy=OSError("No space left on device"))
    async with prepared(client, said) as workers:
        workers.drain()
        client.calls.clear()
        client.join("tcp://w:2")
        await asyncio.sleep(0.15)  # some comparisons
        assert client.calls == []


async def test_worker_that_fails_again_and_again_is_prepared_less_often(client, said, monkeypatch):
    monkeypatch.setattr(dask_workers, "_LONGEST_PAUSE_S", 0.2)
    loop = asyncio.get_running_loop()
    client.join("tcp://w:0")
    pauses = []
    async with asyncio.timeout(5), prepared(client, said) as workers:
        for _ in range(4):
            failed_at = loop.time()
            workers.note_failure(workers.ready["tcp://w:0"], OSError("No space left on device"))
            while not workers.ready:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.001)
            pauses.append(loop.time() - failed_at)
    assert all(map(ge, pauses, (0.05, 0.1, 0.2, 0.2)))


async def test_lost_worker_is_not_prepared_again_for_a_late_error(client, said):
    client.join("tcp://w:0")
    async with prepared(client, said) as workers:
        worker = workers.ready["tcp://w:0"]
        client.lose("tcp://w:0")
        client.calls.clear()
        workers.replace(worker, "was cut off")
        await settle()
        assert client.calls == []
    assert said == ["The worker tcp://w:0 is gone. Its unfinished games are played again."]
