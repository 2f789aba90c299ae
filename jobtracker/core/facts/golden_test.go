package facts

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/quernmr/quern/internal/golden"
	"github.com/quernmr/quern/wire"
)

// TestGolden pins the bytes of every entry of the log and of snapshots.
func TestGolden(t *testing.T) {
	records := map[string]golden.Record{"snapshot": {
		Value: new(factsSnapshot), Form: golden.Msgpack, Head: 1,
		Adjust: func(s any) {
			s.(*factsSnapshot).Jobs[0].Key = s.(*factsSnapshot).Submissions[0].Key // a job needs its submission
		},
		Encode: func(s any) ([]byte, error) {
			body, err := wire.Marshal(s)
			return append([]byte{snapshotVersion}, body...), err
		},
		// Decode restores Facts and encodes them again: Facts must keep every field.
		Decode: func(data []byte, into any) error {
			f, err := Restore(data)
			if err != nil {
				return err
			}
			if data, err = f.Snapshot(); err != nil {
				return err
			}
			*into.(*factsSnapshot), err = decodeSnapshot(data)
			return err
		},
	}}
	for n := byte(1); n != 0; n++ {
		if blankFact(n) == nil {
			continue
		}
		records[fmt.Sprintf("entry-%d", n)] = golden.Record{
			Value: blankFact(n), Form: golden.Msgpack, Head: 2,
			Adjust: func(x any) {
				if s, ok := x.(*Submitted); ok && n != submittedDigest && n != submittedACLs {
					s.Submission.Digest = nil
				}
				if s, ok := x.(*Submitted); ok && n != submittedACLs {
					s.View, s.Modify = "", ""
				}
				if s, ok := x.(*Submitted); ok && n == 5 {
					s.Secret = nil
				}
				if p, ok := x.(*PoolsChanged); ok && n != poolGroups {
					for i := range p.Table.Pools {
						p.Table.Pools[i].SubmitterGroups, p.Table.Pools[i].AdministratorGroups = nil, nil
					}
				}
				if p, ok := x.(*PoolsChanged); ok && n != poolTree && n != poolGroups {
					p.Table.Users = nil
					for i := range p.Table.Pools {
						q := &p.Table.Pools[i]
						q.Inner, q.Administrators, q.Preemption = false, nil, nil
					}
				}
			},
			Encode: func(x any) ([]byte, error) { return Encode(x.(Fact)), nil },
			Decode: func(data []byte, into any) error {
				x, err := Decode(data)
				if err == nil {
					reflect.ValueOf(into).Elem().Set(reflect.ValueOf(x).Elem())
				}
				return err
			},
		}
	}
	golden.Run(t, "testdata/golden/log.txt", records)
}
