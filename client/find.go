package client

import (
	"context"
	"fmt"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Find is [Do] for a submission that an earlier process sent with the same key: it follows its jobs, and submits nothing.
// If the cluster does not know the key, Find returns no jobs: the cluster of that process has ended with them, or was
// never asked. Then it removes what they left of their outputs.
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
		return nil, s.discard()
	}
	s.showSubmitted()
	if err := s.follow(ctx); err != nil {
		return nil, err
	}
	return s.endedJobs(), nil
}

func (s *session) discard() error {
	for i := range s.sub.Plan.Jobs {
		out, err := dfs.Clean(s.sub.Plan.Jobs[i].Output)
		switch step := s.sub.Program.Step; {
		case err != nil:
		case step != nil && s.sub.Plan.Jobs[i].Output == step.Result:
			// No later job writes there. The jobs may have put symbolic links into it, which RemoveAll does not follow.
			err = s.FS.RemoveAll(out)
		default:
			err = runtime.Discard(s.FS, out, dfs.Join(s.Staging, s.sub.Key), s.sub.Key)
		}
		if err != nil {
			return fmt.Errorf("remove what an earlier process left: %w", err)
		}
	}
	return nil
}
