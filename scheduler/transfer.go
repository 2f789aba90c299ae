package scheduler

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Transfer is a job's shuffle, for policies that plan maps and shuffles together. Bytes not
// measured yet are estimates. Jobs without shuffle are left out.
type Transfer struct {
	ID    wire.JobID
	Ready float64 // bytes of ended maps that homes have not fetched
	Left  float64 // bytes not fetched: Ready and the future output of maps
	Whole float64 // bytes of the whole shuffle; at least Left
	Maps  float64 // slot-seconds of the whole map phase; 0: the map phase's Alone
}

// ShuffleShare is one job's part of the shuffle capacity.
type ShuffleShare struct {
	Job   wire.JobID
	Share float64 // from 0 to 1
}

func (t Transfer) check() error {
	for _, field := range []struct {
		name  string
		value float64
	}{{"Ready", t.Ready}, {"Left", t.Left}, {"Whole", t.Whole}, {"Maps", t.Maps}} {
		if !validAmount(field.value) {
			return fmt.Errorf("field Transfer.%s is %v", field.name, field.value)
		}
	}
	return nil
}

// normalTransfers is [Snapshot.Normal] for the shuffles.
func (s *Snapshot) normalTransfers() error {
	if !validAmount(s.Bandwidth) {
		return fmt.Errorf("snapshot: field Bandwidth is %v", s.Bandwidth)
	}
	if len(s.Transfers) == 0 {
		return nil
	}
	transfers := make([]Transfer, 0, len(s.Transfers))
	for _, t := range s.Transfers {
		if err := t.check(); err != nil {
			return fmt.Errorf("%v: %w", t.ID, err)
		}
		t.Left = max(t.Left, t.Ready)
		t.Whole = max(t.Whole, t.Left)
		if t.Left > 0 {
			transfers = append(transfers, t)
		}
	}
	slices.SortFunc(transfers, func(a, b Transfer) int { return a.ID.Compare(b.ID) })
	for i := range transfers {
		if i > 0 && transfers[i].ID == transfers[i-1].ID {
			return fmt.Errorf("%v: field Transfer.ID is given twice", transfers[i].ID)
		}
	}
	s.Transfers = transfers
	return nil
}

// validateShuffleShares is [Plan.Validate] for the shuffles.
func (p Plan) validateShuffleShares(s Snapshot) error {
	if len(p.ShuffleShares) == 0 {
		return nil
	}
	known := make(map[wire.JobID]bool, len(s.Transfers))
	for _, t := range s.Transfers {
		known[t.ID] = true
	}
	total := 0.0
	for _, s := range p.ShuffleShares {
		switch {
		case !known[s.Job]:
			return fmt.Errorf("plan names the shuffle of %v, unknown or for the second time", s.Job)
		case !(s.Share >= 0 && s.Share <= 1):
			return fmt.Errorf("plan gives the shuffle of %v a share of %v", s.Job, s.Share)
		}
		delete(known, s.Job)
		total += s.Share
	}
	if total > 1+1e-9 {
		return fmt.Errorf("plan gives shares of the shuffle of %v in all", total)
	}
	return nil
}
