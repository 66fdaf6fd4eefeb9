"""`python -m mnemolog` is the command `mnemolog`."""

from mnemolog.cli import main

main()
