package runtime

import (
	"bytes"
	"slices"

	"github.com/quernmr/quern/wire"
)

// If a join has half of its records with one key, one reduce would do half of the work. So the maps spread the records
// of such a key on its larger side over all partitions, and send those of the smaller side to all of them. The sample
// tells which keys these are. A join is right without it: if the sample fails, as the job's code panics, no key is spread.
const (
	// SpreadKeys is the property that allows a join to spread keys.
	SpreadKeys = "quern.join.divide.keys"

	leastSpread = 8 << 20 // bytes of the input of a join that is sampled
	spreadPart  = 100     // the sample has one of so many bytes
)

// spreads reports whether the job may spread keys.
func (a *attempt) spreads() bool {
	return a.job.SpreadsKeys && !a.plan().TotalOrder && a.plan().Properties[SpreadKeys] != "false"
}

// spreadKeys returns the keys that a join spreads. Only the first attempt samples, as the job's code may have killed it.
func (a *attempt) spreadKeys() ([][]byte, error) {
	s, err := a.planSample(sampledPlaces)
	if err != nil {
		return nil, err
	}
	if s.bytes < leastSpread || a.id().N%wire.EpochAttempts != 0 {
		return nil, nil
	}
	s.length = max(min(s.length, s.bytes/spreadPart/sampledPlaces), 1)
	if err := protect(func() error { return a.sampleKeys(s) }, nil); err != nil {
		return nil, a.alive() // the maps will have the same error, with their retries
	}
	return chooseSpread(s, a.plan().Reduces), nil
}

// chooseSpread returns keys of a sample that are so frequent on one side that a partition would be much larger than
// others, and so rare on the other one that copies for all partitions are fewer than the key's records.
func chooseSpread(s *sample, partitions int) (keys [][]byte) {
	s.sort()
	for rest := s.keys; len(rest) > 0; {
		group := groupOf(rest[0].key)
		n := slices.IndexFunc(rest, func(r sampledRecord) bool { return !bytes.Equal(groupOf(r.key), group) })
		if n < 0 {
			n = len(rest)
		}
		records := rest[:n]
		rest = rest[n:]
		left := slices.IndexFunc(records, func(r sampledRecord) bool { return !bytes.Equal(r.key, records[0].key) })
		if left < 0 {
			left = n
		}
		most, least := records[0].key, n-left
		if left < n-left {
			most, least = records[n-1].key, left
		}
		many := n - least
		if many >= minDivided && many*dividedShare*partitions >= len(s.keys) && (least+1)*partitions <= many && len(most) < sampledKey {
			keys = append(keys, most)
		}
	}
	return keys
}

// groupOf returns a key of a join without the byte of its side.
func groupOf(key []byte) []byte { return key[:max(len(key)-1, 0)] }
