"""The command line: a module for each command or group of commands, and what they share."""
