"""Configuration: the YAML files of a workspace, checked, with errors that name file, line and field."""

from evalpipe.config.added_task import TASK_FILE, AddedTaskConfig, load_added_task
from evalpipe.config.agent import PROGRAM_FORMS, AgentConfig, RetryPolicy
from evalpipe.config.forge import ForgeConfig
from evalpipe.config.lake import LakeConfig, load_lake
from evalpipe.config.network import MachineNetwork, NetworkConfig, machine_network
from evalpipe.config.problems import ConfigError, Problem
from evalpipe.config.provider import ProviderConfig
from evalpipe.config.repository import (
    EnvironmentConfig,
    PathRules,
    RepositoryConfig,
    ValidationConfig,
    resolve_base_image,
)
from evalpipe.config.runner import CanaryConfig, RunnerConfig
from evalpipe.config.sweep import Category, LimitsConfig, PromptMode, SweepConfig
from evalpipe.config.values import digest
from evalpipe.config.workspace import LoadedConfigs, Workspace, find_workspace

__all__ = [
    "PROGRAM_FORMS",
    "TASK_FILE",
    "AddedTaskConfig",
    "AgentConfig",
    "CanaryConfig",
    "Category",
    "ConfigError",
    "EnvironmentConfig",
    "ForgeConfig",
    "LakeConfig",
    "LimitsConfig",
    "LoadedConfigs",
    "MachineNetwork",
    "NetworkConfig",
    "PathRules",
    "Problem",
    "PromptMode",
    "ProviderConfig",
    "RepositoryConfig",
    "RetryPolicy",
    "RunnerConfig",
    "SweepConfig",
    "ValidationConfig",
    "Workspace",
    "digest",
    "find_workspace",
    "load_added_task",
    "load_lake",
    "machine_network",
    "resolve_base_image",
]
