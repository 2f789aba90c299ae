package identity

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxGossipKeys is the maximum number of gossip keys: an old one and its successor.
const maxGossipKeys = 2

const gossipKeySize = 32

// GossipKey reads the gossip key that encrypts.
func (id *Identity) GossipKey() ([]byte, error) {
	keys, err := id.GossipKeys()
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}

// GossipKeys reads the gossip keys. The first one encrypts, all of them decrypt. For a nil Identity
// there are none.
func (id *Identity) GossipKeys() ([][]byte, error) {
	if id == nil {
		return nil, nil
	}
	keys, err := readGossipKeys(filepath.Join(id.dir, GossipFile))
	if err != nil {
		return nil, fmt.Errorf("%w: gossip key: %w", ErrNoIdentity, err)
	}
	return keys, nil
}

func readGossipKeys(name string) ([][]byte, error) {
	if err := checkPrivate(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: copy it from another daemon, all of a cluster have the same", err)
		}
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(string(text))
	if len(lines) == 0 || len(lines) > maxGossipKeys {
		return nil, fmt.Errorf("%s: %d keys, want 1 to %d, each in its own line", name, len(lines), maxGossipKeys)
	}
	var keys [][]byte
	for _, line := range lines {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != gossipKeySize {
			return nil, fmt.Errorf("%s: want %d bytes in base64 in each line", name, gossipKeySize)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
