package scheduler_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quernmr/quern/scheduler"
)

func TestTransfersNormal(t *testing.T) {
	s := scheduler.Snapshot{Bandwidth: 5, Transfers: []scheduler.Transfer{
		{ID: job(3), Whole: 9},
		{ID: job(2), Ready: 4, Left: 2, Whole: 3},
		{ID: job(1), Left: 1, Maps: 7},
	}}
	normal, err := s.Normal()
	want := []scheduler.Transfer{{ID: job(1), Left: 1, Whole: 1, Maps: 7}, {ID: job(2), Ready: 4, Left: 4, Whole: 4}}
	if err != nil || !reflect.DeepEqual(normal.Transfers, want) {
		t.Errorf("%+v: %v", normal.Transfers, err)
	}
	if s.Transfers[0].ID != job(3) {
		t.Errorf("the snapshot has changed: %+v", s.Transfers)
	}
	s.Transfers = append(s.Transfers, scheduler.Transfer{ID: job(1), Left: 1})
	if _, err := s.Normal(); err == nil || !strings.Contains(err.Error(), "job_1_0001: field Transfer.ID is given twice") {
		t.Errorf("one job twice: %v", err)
	}
}

func TestShuffleSharesValidated(t *testing.T) {
	s := scheduler.Snapshot{Transfers: []scheduler.Transfer{{ID: job(1), Left: 1}, {ID: job(2), Left: 1}}}
	for _, c := range []struct {
		shares []scheduler.ShuffleShare
		want   string
	}{
		{nil, ""},
		{[]scheduler.ShuffleShare{{Job: job(2), Share: 0.3}, {Job: job(1), Share: 0.7}}, ""},
		{[]scheduler.ShuffleShare{{Job: job(3)}}, "the shuffle of job_1_0003, unknown"},
		{[]scheduler.ShuffleShare{{Job: job(1)}, {Job: job(1)}}, "the shuffle of job_1_0001, unknown or for the second time"},
		{[]scheduler.ShuffleShare{{Job: job(1), Share: -0.1}}, "a share of -0.1"},
		{[]scheduler.ShuffleShare{{Job: job(1), Share: 1.1}}, "a share of 1.1"},
		{[]scheduler.ShuffleShare{{Job: job(1), Share: 0.6}, {Job: job(2), Share: 0.6}}, "of 1.2 in all"},
	} {
		err := (scheduler.Plan{ShuffleShares: c.shares}).Validate(s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.shares, err)
		}
	}
}
