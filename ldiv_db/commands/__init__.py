"""The commands of `ldiv`, a module each: they parse, call and print."""
