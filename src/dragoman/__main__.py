"""`python -m dragoman` is the same command."""

from dragoman.cli import run

run()
