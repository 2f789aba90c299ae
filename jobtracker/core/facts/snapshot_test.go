package facts

import (
	"errors"
	"slices"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestSnapshotVersions checks that snapshots of older builds load. A snapshot of a newer build is
// refused if this build would lose a part of it.
func TestSnapshotVersions(t *testing.T) {
	current, err := begin(t).facts.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	older := slices.Clone(current)
	older[0] = 1
	for what, data := range map[string][]byte{"this version": current, "version 1": older} {
		f, err := Restore(data)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if again, err := f.Snapshot(); err != nil || !slices.Equal(again, current) {
			t.Errorf("%s: comes back as other bytes: %v", what, err)
		}
	}
	type later struct {
		factsSnapshot `msgpack:",inline"`
		Later         int
	}
	body, err := wire.Marshal(&later{Later: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		data    []byte
		refused bool
	}{
		"nothing":                         {nil, true},
		"a later version":                 {[]byte{3, 0x80}, true},
		"an unknown field":                {append([]byte{2}, body...), true},
		"an unknown field of version 1":   {append([]byte{1}, body...), false},
		"a snapshot that has nothing yet": {[]byte{2, 0x80}, false},
	} {
		if _, err := Restore(c.data); c.refused != errors.Is(err, ErrUnknownFact) || !c.refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
