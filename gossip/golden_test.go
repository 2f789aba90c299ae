package gossip

import (
	"errors"
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the bytes of gossip messages.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/messages.txt", map[string]golden.Record{
		"member": {
			Value: new(Member), Form: golden.Msgpack, Head: 1,
			Encode: func(m any) ([]byte, error) { return encodeMember(*m.(*Member)) },
			Decode: func(data []byte, into any) (err error) {
				*into.(*Member), err = decodeMember(data)
				return err
			},
		},
		"ask": {
			Value: new(checkMessage), Form: golden.Msgpack, Head: 1,
			Encode: func(a any) ([]byte, error) { return encodeCheck(*a.(*checkMessage)), nil },
			Decode: func(data []byte, into any) error {
				a, ok := decodeCheck(data)
				if !ok {
					return errors.New("it is refused")
				}
				*into.(*checkMessage) = a
				return nil
			},
		},
	})
}

// TestNumbers pins the encoded numbers of roles and transports.
func TestNumbers(t *testing.T) {
	if JobTracker != 1 || TaskTracker != 2 || byUDP != 1 || byTCP != 2 {
		t.Error(JobTracker, TaskTracker, byUDP, byTCP)
	}
}
