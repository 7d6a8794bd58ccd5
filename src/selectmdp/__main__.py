"""`python -m selectmdp` is the command `selectmdp`."""

from selectmdp.cli import main

main()
