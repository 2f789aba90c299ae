package main

import (
	"context"
	"errors"
	"os"

	"github.com/quernmr/quern/cmd/internal/top"
)

const topHelp = `Shows the leader, the slots, the task trackers, and the jobs with their predicted ends, until you
press q.

  s  sort by another column     r  reverse the order
  /  show only jobs with a text in their id, name, owner, pool or state
  e  show ended jobs, too       t  show the task trackers
  up, down, page up, page down  scroll

It needs a terminal: use mrsubmit list and mrsubmit cluster in scripts. NO_COLOR=1 turns off the
colors.`

// top shows the cluster on the terminal.
func (q *query) top(ctx context.Context) error {
	switch {
	case q.json:
		return usagef("top has no JSON: use mrsubmit list -json or mrsubmit cluster -json")
	case q.terminal == nil:
		return errors.New("standard input and output are not a terminal that can redraw: use mrsubmit list and mrsubmit cluster")
	}
	if _, err := q.cluster.Cluster(ctx); err != nil { // it says more than a screen can
		return err
	}
	q.cluster.Note = nil
	return top.Run(ctx, q.cluster, os.Stdin, q.terminal, q.colors != nil)
}
