"""The command line. One rule says where a command lives: `weft NAME` is `weft/cli/NAME.py`.

The file of a command has its function, its options, its help and what it prints. Options of several
commands are in `options`. The work, and the text that shows its result, are in the package of the
subject, which is imported when the command runs, so that `--help` answers at once.
"""

try:
    from weft.cli.app import main
except KeyboardInterrupt:
    # What is read takes most of the time of a short command, and nobody else answers meanwhile.
    raise SystemExit(130) from None

__all__ = ["main"]
