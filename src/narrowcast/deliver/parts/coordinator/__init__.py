"""The coordinator: leads, asks for plans, and moves the system from epoch to epoch."""

from narrowcast.deliver.parts.coordinator.coordinator import Coordinator
from narrowcast.deliver.parts.coordinator.leader import CoordinatorSettings

__all__ = ["Coordinator", "CoordinatorSettings"]
