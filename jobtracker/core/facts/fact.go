package facts

import (
	"errors"
	"fmt"

	"github.com/quernmr/quern/wire"
)

// entryVersion is the first byte of every entry.
const entryVersion = 1

// ErrUnknownFact reports a log entry or snapshot of another build that this build cannot read.
// It must not skip the entry, since other job trackers have applied it.
var ErrUnknownFact = errors.New("log entry of another version")

// Fact is a change of the replicated state. Its fields have one-letter names in the log, since
// a job of many tasks writes many facts.
type Fact interface {
	number() byte
	// Name identifies the fact: if a proposal's outcome is unknown, the leader proposes it again.
	Name() string
	// Fits reports whether the fact applies to f: others have no effect.
	Fits(f *Facts) bool
	// apply changes f. Facts.Apply calls it only if the fact fits.
	apply(f *Facts, term uint64)
}

// blankFact returns an empty fact by its number. The numbers are append-only.
func blankFact(number byte) Fact {
	switch number {
	case 1:
		return new(Bootstrapped)
	case 2:
		return new(LeaderElected)
	case 3:
		return new(TrackerRegistered)
	case 4:
		return new(TrackerLost)
	case 5:
		return new(Submitted)
	case 6:
		return new(SplitsWritten)
	case 7:
		return new(DigestsKnown)
	case 8:
		return new(Granted)
	case 9:
		return new(Revoked)
	case 10:
		return new(Committed)
	case 11:
		return new(Stopped)
	case 12:
		return new(Committing)
	case 13:
		return new(Ended)
	case 14:
		return new(Swept)
	case 15:
		return new(TrackerExcluded)
	case 16:
		return new(TrackerReadmitted)
	case 17:
		return new(SettingsChanged)
	case 18:
		return new(SchedulingChanged)
	case 19:
		return new(PoolsChanged)
	case 20:
		return new(Drain)
	case 21:
		return new(Drained)
	case submittedSecret, submittedDigest, submittedACLs:
		return new(Submitted)
	case 23:
		return new(DrainIdle)
	case 24:
		return new(GivenUp)
	case 25:
		return new(Skipped)
	case 26:
		return new(OperatorExcluded)
	case 27:
		return new(OperatorReadmitted)
	case poolTree, poolGroups:
		return new(PoolsChanged)
	}
	return nil
}

// Encode makes a log entry. It panics on values that msgpack cannot hold; facts have none.
func Encode(x Fact) []byte {
	body, err := wire.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("core: a fact cannot be encoded: %v", err))
	}
	return append([]byte{entryVersion, x.number()}, body...)
}

// Decode reads a log entry. It refuses entries of other versions with ErrUnknownFact.
func Decode(data []byte) (Fact, error) {
	if len(data) < 2 {
		return nil, fmt.Errorf("%w: %d bytes", ErrUnknownFact, len(data))
	}
	if data[0] != entryVersion {
		return nil, fmt.Errorf("%w: version %d, this build knows %d", ErrUnknownFact, data[0], entryVersion)
	}
	x := blankFact(data[1])
	if x == nil {
		return nil, fmt.Errorf("%w: fact number %d", ErrUnknownFact, data[1])
	}
	if err := wire.Unmarshal(data[2:], x); err != nil {
		return nil, fmt.Errorf("log entry: %w", err)
	}
	return x, nil
}

// Describe returns the name of a log entry's fact, for logs and scenarios.
func Describe(data []byte) string {
	x, err := Decode(data)
	if err != nil {
		return err.Error()
	}
	return x.Name()
}
