"""The tables of a league are held against the records of its games."""

from types import SimpleNamespace

import pytest

from referee.errors import Cause, Evidence
from referee.match.replay import Difference
from referee.records import Fault
from referee.store import FaultRow, storable
from referee.tournament.verify import _check_faults

SAID = "a\0b"


def row(text):
    return FaultRow("g-1", 0, "ann@1", Cause.CRASH, True, 3, text, None, None, 5, text)  # noqa: FBT003


@pytest.mark.parametrize("kept", [SAID, storable(SAID)], ids=["by the first schema", "today"])
def test_a_nul_in_a_fault_is_no_difference(kept):
    evidence = Evidence(detail=SAID, elapsed_us=5, stderr_tail=SAID)
    fault = Fault(0, Cause.CRASH, forfeit=True, move=3, evidence=evidence)
    record = SimpleNamespace(faults=(fault,))
    _check_faults(record, [row(kept)])
    with pytest.raises(Difference, match="table of faults differs"):
        _check_faults(record, [row("ab")])
