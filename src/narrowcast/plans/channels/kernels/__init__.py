"""The compiled loops of channel planning."""
