package attemptlog

// namedPipes reports whether attempts write their logs to named pipes on this system.
const namedPipes = true
