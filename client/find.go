package client

import (
	"context"
	"fmt"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Find is [Do] for a submission that an earlier process sent with the same key: it follows its jobs, and submits nothing.
// If the cluster does not know the key, Find returns no jobs: the cluster of that process has ended with them, or was
// never asked. Then it removes what they left of a step's result. Other outputs stay: this process may have more rights
// than the jobs had, which could have put links to anything into them.
func Find(ctx context.Context, cfg Config, sub *wire.Submission) ([]wire.EndedJob, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &session{Config: cfg, sub: sub, killOnInterrupt: true}
	var err error
	if s.ids, err = s.Cluster.Find(ctx, sub.Key); err != nil {
		return nil, fmt.Errorf("look for the jobs of an earlier process: %w", err)
	}
	if len(s.ids) == 0 {
		return nil, s.removeResult()
	}
	s.showSubmitted()
	if err := s.follow(ctx); err != nil {
		return nil, err
	}
	return s.endedJobs(), nil
}

// removeResult removes the result of the submission's step. RemoveAll follows no links.
func (s *session) removeResult() error {
	if s.sub.Program.Step == nil {
		return nil
	}
	result, err := dfs.Clean(s.sub.Program.Step.Result)
	if err == nil {
		err = s.FS.RemoveAll(result)
	}
	if err != nil {
		return fmt.Errorf("remove what an earlier process left: %w", err)
	}
	return nil
}
