"""`python -m narrowcast.cli` is `narrowcast`."""

from narrowcast.cli import main

main()
