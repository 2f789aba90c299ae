package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestSince: -since takes a duration before now, a day, or a time.
func TestSince(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"90m":                       now.Add(-90 * time.Minute),
		"0s":                        now,
		"2026-01-30":                time.Date(2026, 1, 30, 0, 0, 0, 0, time.Local),
		"2026-01-30T12:00:00+01:00": time.Date(2026, 1, 30, 11, 0, 0, 0, time.UTC),
	} {
		if at, err := parseSince(text, now); err != nil || !at.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", text, at, err, want)
		}
	}
	for _, text := range []string{"-2h", "yesterday", "2026-13-01", "12"} {
		if at, err := parseSince(text, now); err == nil || !strings.Contains(err.Error(), "-since "+text) {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
}

// TestFilterFlags: the flags of list and history select jobs.
func TestFilterFlags(t *testing.T) {
	f := &jobFilter{states: "running, failed", owner: "ann", pool: "etl", name: "d*", since: "1s"}
	q, err := f.query(time.UnixMilli(5000))
	if err != nil || len(q.Filter.States) != 2 || q.Filter.States[1] != wire.Failed || q.Filter.Owner != "ann" || q.Filter.Pool != "etl" || q.Filter.Name != "d*" || q.Filter.Since != 4000 {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := (&jobFilter{states: "runing"}).query(time.Now()); err == nil || !strings.Contains(err.Error(), "-state runing: want some of waiting, preparing, running") {
		t.Errorf("a wrong state: %v", err)
	}
}
