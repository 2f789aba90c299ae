package facts

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quernmr/quern/wire"
)

// CheckSubmission returns why a submission is invalid. It decides whether an entry of the log
// applies, so it must not refuse what earlier builds accepted.
func CheckSubmission(s *wire.Submission) error {
	switch {
	case s == nil || s.Key == "":
		return errors.New("it has no key")
	case s.Staging == "":
		return errors.New("it has no staging directory")
	case len(s.Plan.Jobs) == 0:
		return errors.New("its plan has no jobs")
	}
	writers := make(map[string]string)
	for i := range s.Plan.Jobs {
		j := &s.Plan.Jobs[i]
		if j.Reduces < 0 || j.Reduces > wire.MaxTasks {
			return fmt.Errorf("job %q has %d reduces", j.Name, j.Reduces)
		}
		for _, in := range j.Inputs {
			if in.From < 0 {
				return fmt.Errorf("job %q reads job number %d", j.Name, in.From)
			}
		}
		for _, r := range j.Results {
			if r.From < 1 {
				return fmt.Errorf("job %q has the side file %q of job number %d", j.Name, r.Name, r.From)
			}
		}
		for _, after := range j.InputJobs() {
			if after >= i {
				return fmt.Errorf("job %q reads job number %d, which is not before it", j.Name, after+1)
			}
		}
		out := strings.TrimRight(j.Output, "/")
		if other, taken := writers[out]; taken && out != "" {
			return fmt.Errorf("jobs %q and %q have one output: %s", other, j.Name, out)
		}
		writers[out] = j.Name
	}
	return nil
}
