"""Generators of realistic inputs."""
