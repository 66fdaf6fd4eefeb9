"""The table of former faults; importing it knows them all."""

from tests.properties.faults import entity_patches, offline_patches, patches
from tests.properties.faults.former import FAULTS, Fault

__all__ = ["FAULTS", "Fault", "entity_patches", "offline_patches", "patches"]
