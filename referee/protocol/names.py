"""Which enum value of the schema stands for which of the project's. Complete; a test says so."""

from __future__ import annotations

from referee.pb import table_pb2 as pb
from referee.rules.actions import Choice, DecisionKind
from referee.rules.events import Termination
from referee.rules.ruleset import EndOn

CHOICES: dict[Choice, pb.Choice] = {
    choice: getattr(pb, f"CHOICE_{choice.name}") for choice in Choice
}
CHOICES_BACK = {value: choice for choice, value in CHOICES.items()}
KINDS: dict[DecisionKind, pb.DecisionKind] = {
    kind: getattr(pb, f"DECISION_KIND_{kind.name}") for kind in DecisionKind
}
TERMINATIONS: dict[Termination, pb.Termination] = {
    termination: getattr(pb, f"TERMINATION_{termination.name}") for termination in Termination
}
TERMINATIONS_BACK = {value: termination for termination, value in TERMINATIONS.items()}
END_ON: dict[EndOn, pb.EndOn] = {end_on: getattr(pb, f"END_ON_{end_on.name}") for end_on in EndOn}
END_ON_BACK = {value: end_on for end_on, value in END_ON.items()}
