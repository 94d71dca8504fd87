"""What the commands print, one module a command, as in `cli.commands`."""
