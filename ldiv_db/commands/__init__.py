"""The commands of `ldiv`: their modules parse options, call, and print."""
