package main

import (
	"strings"
	"time"

	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// jobFilter has the flags that select jobs of a list.
type jobFilter struct {
	states, owner, pool, name, since, flow string
}

// define defines the flags.
func (f *jobFilter) define(q *query) {
	q.flags.StringVar(&f.states, "state", "", "only jobs in these `states`, separated by commas, as running,failed")
	q.flags.StringVar(&f.owner, "owner", "", "only jobs of this `user`")
	q.flags.StringVar(&f.pool, "pool", "", "only jobs in this `pool`")
	q.flags.StringVar(&f.name, "name", "", "only jobs with this `name`; each * stands for any text, as 'daily-*'")
	q.flags.StringVar(&f.since, "since", "", "only jobs submitted in the last `duration`, as 2h, or since a time, as 2026-01-31 or 2026-01-31T12:00:00Z")
}

// query returns the query of a list of jobs at a time.
func (f *jobFilter) query(now time.Time) (q core.Query, err error) {
	q.Filter.Owner, q.Filter.Pool, q.Filter.Name = f.owner, f.pool, f.name
	if f.flow != "" {
		if q.Filter.Flow, err = wire.ParseFlowID(f.flow); err != nil {
			return q, usagef("-flow: %v", err)
		}
	}
	if f.states != "" {
		for text := range strings.SplitSeq(f.states, ",") {
			state, err := parseState(strings.TrimSpace(text))
			if err != nil {
				return q, err
			}
			q.Filter.States = append(q.Filter.States, state)
		}
	}
	if f.since != "" {
		at, err := parseSince(f.since, now)
		if err != nil {
			return q, err
		}
		q.Filter.Since = at.UnixMilli()
	}
	return q, nil
}

func parseState(text string) (wire.State, error) {
	var all []string
	for s := wire.Waiting; s <= wire.Killed; s++ {
		if s.String() == text {
			return s, nil
		}
		all = append(all, s.String())
	}
	return 0, usagef("-state %s: want some of %s%s", text, strings.Join(all, ", "), spelling.DidYouMean("", text, all))
}

// parseSince parses a duration before now, a day, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if d < 0 {
			return now, usagef("-since %s: want a positive duration", text)
		}
		return now.Add(-d), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return now, usagef("-since %s: want a duration as 2h, a day as 2026-01-31, or a time as 2026-01-31T12:00:00Z", text)
	}
	return at, nil
}
