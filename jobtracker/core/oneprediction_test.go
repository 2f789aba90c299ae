package core

import (
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestOnePrediction: whenever it is asked, everything that shows a predicted end shows the same one: the status, which the
// display follows, the list, and both explanations. Within a prediction, no phase ends after the job.
func TestOnePrediction(t *testing.T) {
	for name := range strings.FieldsSeq(*forecastPolicies) {
		asked, known := 0, 0
		watchedMix(t, "shuffle", name, 1, func(p *paced) {
			list, _, err := p.core.Statuses(p.now, Query{})
			explained, _, explainErr := p.core.Explanations(p.now, wire.JobID{})
			if err != nil || explainErr != nil {
				t.Fatal(err, explainErr)
			}
			for _, s := range list {
				if s.State.Ended() {
					continue
				}
				alone, _ := p.core.StatusAt(p.now, s.ID)
				i := slices.IndexFunc(explained, func(x wire.Explanation) bool { return x.Job == s.ID })
				x := &explained[i]
				if s.Prediction != alone.Prediction || s.Prediction != x.Prediction {
					t.Fatalf("%s at %v: %v in the list %+v, in its status %+v, explained %+v", name, p.now, s.ID, s.Prediction, alone.Prediction, x.Prediction)
				}
				for _, phase := range x.Phases {
					if s.Prediction.Known() && phase.End > x.End {
						t.Fatalf("%s at %v: %v of %v end at %d, and the job at %d", name, p.now, phase.Phase, s.ID, phase.End, x.End)
					}
				}
				asked++
				if s.Prediction.Known() {
					known++
				}
				if asked%20 == 0 {
					single, _ := p.core.Explain(p.now, s.ID)
					if alone, _ = p.core.StatusAt(p.now, s.ID); alone.Prediction != single.Prediction {
						t.Fatalf("%s at %v: status of %v %+v, after an explanation with %+v", name, p.now, s.ID, alone.Prediction, single.Prediction)
					}
					return // the list is older than this forecast
				}
			}
		})
		if known*4 < asked || asked == 0 {
			t.Errorf("%s: of %d predictions %d are known", name, asked, known)
		}
	}
}
