package gossip

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/wire"
)

// Role is the kind of daemon.
type Role uint8

// Roles. Their numbers never change.
const (
	JobTracker Role = iota + 1
	TaskTracker
)

func (r Role) String() string {
	switch r {
	case JobTracker:
		return "job tracker"
	case TaskTracker:
		return "task tracker"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Member is the description of a process that it sends to the others.
type Member struct {
	ID      string `msgpack:"i"`
	Role    Role   `msgpack:"r"`
	HTTP    string `msgpack:"h,omitempty"` // host:port of its HTTP service
	Raft    string `msgpack:"f,omitempty"` // host:port, of a job tracker
	Expect  int    `msgpack:"e,omitempty"` // number of job trackers with which it creates a cluster; 0: it creates none
	Cluster string `msgpack:"c,omitempty"` // id of its cluster
	Voter   bool   `msgpack:"v,omitempty"` // its log has state
	Ballot  string `msgpack:"b,omitempty"` // digest of the voters with which it would create a cluster
	Started int64  `msgpack:"s,omitempty"` // Unix nanoseconds on its own clock

	Suspect bool `msgpack:"-"` // it has not answered lately, and may have died
}

// betterThan reports whether m is more likely alive than other, which has the same role and id.
func (m Member) betterThan(other Member) bool {
	if m.Suspect != other.Suspect {
		return other.Suspect
	}
	return m.Started > other.Started
}

const metaVersion = 1

var (
	errMetaTooLong  = errors.New("its description is longer than gossip allows")
	errMetaVersion  = errors.New("it uses another version of gossip")
	errOtherCluster = errors.New("it belongs to another cluster")
)

func encodeMember(m Member) ([]byte, error) {
	if m.ID == "" || m.Role == 0 {
		return nil, fmt.Errorf("gossip: %s %q has no id or no role", m.Role, m.ID)
	}
	body, err := wire.Marshal(&m)
	if err != nil {
		return nil, err
	}
	meta := append([]byte{metaVersion}, body...)
	if len(meta) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("gossip: %s %.40q: %w: %d bytes of %d; its id and addresses are too long",
			m.Role, m.ID, errMetaTooLong, len(meta), memberlist.MetaMaxSize)
	}
	return meta, nil
}

func decodeMember(meta []byte) (Member, error) {
	var m Member
	if len(meta) == 0 || meta[0] != metaVersion {
		return m, errMetaVersion
	}
	if err := wire.Unmarshal(meta[1:], &m); err != nil {
		return m, err
	}
	if m.ID == "" || m.Role == 0 {
		return m, fmt.Errorf("%w: it has no id or no role", wire.ErrMalformed)
	}
	return m, nil
}

// processName returns a name for this process in memberlist that no other process ever has.
func processName(m Member) string {
	var b [6]byte
	rand.Read(b[:]) // it never fails
	role := "jobtracker"
	if m.Role == TaskTracker {
		role = "tasktracker"
	}
	return role + ":" + m.ID + ":" + hex.EncodeToString(b[:])
}
