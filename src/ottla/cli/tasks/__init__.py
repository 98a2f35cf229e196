"""The work of the commands, and the options that they share."""
