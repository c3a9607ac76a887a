"""What planning needs to know of a log: the same definitions for batch and stream."""
