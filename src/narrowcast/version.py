"""The version, in one place. Reading it from the installed package's metadata would import sockets."""

__version__ = "0.1.0"
