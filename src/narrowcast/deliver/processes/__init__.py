"""The parts on real engines: one process per role, or all of them on one machine."""
