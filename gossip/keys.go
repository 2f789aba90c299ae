package gossip

import (
	"bytes"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// rekeyPeriod is the time between two reads of the keys.
const rekeyPeriod = 2 * time.Second

func (g *Gossip) makeKeyring(cfg Config) (err error) {
	keys := [][]byte{cfg.Key}
	if cfg.Keys != nil {
		if keys, err = cfg.Keys(); err != nil {
			return err
		}
	}
	if len(keys) > 0 && len(keys[0]) > 0 {
		g.ring, err = memberlist.NewKeyring(keys, keys[0])
	}
	return err
}

// watchKeys uses changed keys until gossip ends. After an error the old keys stay in use.
func (g *Gossip) watchKeys(read func() ([][]byte, error), period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	logged := ""
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		keys, err := read()
		changed := false
		if err == nil {
			changed, err = setKeys(g.ring, keys)
		}
		switch {
		case err != nil && err.Error() != logged:
			logged = err.Error()
			g.log.Error("gossip: new keys cannot be used, the old ones stay", "error", err)
		case err == nil:
			logged = ""
		}
		if changed {
			g.log.Info("gossip: new keys", "keys", len(keys))
		}
	}
}

// setKeys makes a keyring have these keys. The first one encrypts.
func setKeys(ring *memberlist.Keyring, keys [][]byte) (changed bool, err error) {
	old := ring.GetKeys()
	if len(keys) == 0 || slices.EqualFunc(old, keys, bytes.Equal) {
		return false, nil
	}
	for _, key := range keys {
		if err := memberlist.ValidateKey(key); err != nil {
			return false, err
		}
	}
	if err := ring.AddKey(keys[0]); err != nil {
		return false, err
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return false, err
	}
	// RemoveKey moves the keys behind a removed one, although others may read them at this time. So
	// remove the last one each time, and add again what stays.
	for others := ring.GetKeys(); len(others) > 1; others = ring.GetKeys() {
		if err := ring.RemoveKey(others[len(others)-1]); err != nil {
			return true, err
		}
	}
	for _, key := range keys[1:] {
		if err := ring.AddKey(key); err != nil {
			return true, err
		}
	}
	return true, nil
}
