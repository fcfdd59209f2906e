"""Agents: adapters, the attempt, its outcomes."""

from evalpipe.agents.adapter import Adapter, AgentCommand, Assignment
from evalpipe.agents.attempt import AttemptResult, run_attempt
from evalpipe.agents.instance import HistoryKind, Instance, Instances, InstanceUnproven, make_instance
from evalpipe.agents.outcome import OUTCOME_RULES, AttemptOutcome
from evalpipe.agents.scripted import PatchReplay, PatchScript, ScriptError

__all__ = [
    "OUTCOME_RULES",
    "Adapter",
    "AgentCommand",
    "Assignment",
    "AttemptOutcome",
    "AttemptResult",
    "HistoryKind",
    "Instance",
    "InstanceUnproven",
    "Instances",
    "PatchReplay",
    "PatchScript",
    "ScriptError",
    "make_instance",
    "run_attempt",
]
