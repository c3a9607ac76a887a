"""Multicast on Cyclone DDS."""
