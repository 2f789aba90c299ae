package attemptlog

// namedPipes says whether a process can be told to write into pipes by their names, and
// these be waited for.
const namedPipes = true
