"""The verification compares the tables of a league with the records of its games."""

from types import SimpleNamespace

import pytest

from referee.errors import Cause, Evidence
from referee.match.replay import Difference
from referee.records import ChargedFault, Fault
from referee.store import escape_nul
from referee.tournament.verify_league import _check_faults

SAID = "a\0b"


def fault(text):
    evidence = Evidence(detail=text, elapsed_us=5, stderr_tail=text)
    return Fault(0, Cause.CRASH, forfeit=True, move=3, evidence=evidence)


def stored(text):
    return ChargedFault("g-1", "ann@1", fault(text))


@pytest.mark.parametrize("kept", [SAID, escape_nul(SAID)], ids=["by the first schema", "today"])
def test_a_nul_in_a_fault_is_no_difference(kept):
    record = SimpleNamespace(faults=(fault(SAID),))
    _check_faults(record, [stored(kept)])
    with pytest.raises(Difference, match="table of faults differs"):
        _check_faults(record, [stored("ab")])
