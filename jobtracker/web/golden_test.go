package web

import (
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the JSON of requests and answers.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/json.txt", map[string]golden.Record{
		"jobs":         golden.OfJSON(new(Page[Job])),
		"leader":       golden.OfJSON(new(LeaderEvent)),
		"problem":      golden.OfJSON(new(Error)),
		"attempts":     golden.OfJSON(new(Attempts)),
		"recent":       golden.OfJSON(new(Recent)),
		"past-plan":    golden.OfJSON(new(PastPlan)), // of a History; jobs has its Job
		"explanations": golden.OfJSON(new(Page[Explanation])),
		"cluster":      golden.OfJSON(new(Cluster)),
		"submitted":    golden.OfJSON(new(submitted)),
		"kill":         golden.OfJSON(new(killRequest)),
		"change":       golden.OfJSON(new(Change)),
		"drain":        golden.OfJSON(new(drainRequest)),
		"exclude":      golden.OfJSON(new(ExclusionRequest)),
	})
}
