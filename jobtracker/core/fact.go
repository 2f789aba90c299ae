package core

import (
	"errors"
	"fmt"

	"github.com/quernmr/quern/wire"
)

// factVersion is the first byte of every entry.
const factVersion = 1

// ErrUnknownFact reports a log entry that this build does not know how to
// apply: it must not be skipped, since other job trackers have applied it.
var ErrUnknownFact = errors.New("log entry of another version")

// fact is one thing that must survive. Its fields have one-letter names in the
// log, since a job of many tasks writes many of them.
type fact interface {
	number() byte
	// key names the fact: a proposal whose outcome is unknown is proposed again under it.
	key() string
	// fits says whether the fact still has something to say to f.
	fits(f *Facts) bool
	// apply changes f. It is called only when the fact fits.
	apply(f *Facts, term uint64)
}

// The numbers of facts are append-only.
func blankFact(number byte) fact {
	switch number {
	case 1:
		return new(bootstrapped)
	case 2:
		return new(tookOffice)
	case 3:
		return new(trackerRegistered)
	case 4:
		return new(trackerLost)
	case 5:
		return new(submitted)
	case 6:
		return new(splitsWritten)
	case 7:
		return new(digestsKnown)
	case 8:
		return new(granted)
	case 9:
		return new(revoked)
	case 10:
		return new(committed)
	case 11:
		return new(stopped)
	case 12:
		return new(committing)
	case 13:
		return new(ended)
	case 14:
		return new(swept)
	case 15:
		return new(excluded)
	case 16:
		return new(readmitted)
	case 17:
		return new(changed)
	case 18:
		return new(scheduled)
	case 19:
		return new(pooled)
	case 20:
		return new(drain)
	case 21:
		return new(drained)
	case submittedSecret:
		return new(submitted)
	case 23:
		return new(rested)
	}
	return nil
}

// encodeFact makes a log entry. Only a value that msgpack cannot hold would
// fail, and facts have none.
func encodeFact(x fact) []byte {
	body, err := wire.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("core: a fact cannot be encoded: %v", err))
	}
	return append([]byte{factVersion, x.number()}, body...)
}

func decodeFact(data []byte) (fact, error) {
	if len(data) < 2 {
		return nil, fmt.Errorf("%w: %d bytes", ErrUnknownFact, len(data))
	}
	if data[0] != factVersion {
		return nil, fmt.Errorf("%w: version %d, this build knows %d", ErrUnknownFact, data[0], factVersion)
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

// Describe says in words what a log entry holds, for logs and scenarios.
func Describe(data []byte) string {
	x, err := decodeFact(data)
	if err != nil {
		return err.Error()
	}
	return x.key()
}
