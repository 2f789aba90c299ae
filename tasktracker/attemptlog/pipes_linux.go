package attemptlog

// namedPipes reports whether attempts can write to named pipes, and reads can wait for
// them.
const namedPipes = true
