package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/wire"
)

type (
	// Plans has the slots of jobs in the last minutes under this leader: as planned, and as they were.
	Plans struct {
		Items []PlannedPhase `json:"items"` // maps, then reduces
	}

	// PlannedPhase has the samples of a phase. The lists have an element for each sample, which holds until the next one.
	PlannedPhase struct {
		Phase  string        `json:"phase"`
		Since  time.Time     `json:"since,omitzero"` // earlier samples are missing
		Times  []time.Time   `json:"times"`
		Slots  []int         `json:"slots"` // of the cluster
		Jobs   []PlannedJob  `json:"jobs"`
		Others PlannedOthers `json:"others"`
	}

	// PlannedJob has the slots of a job in each sample.
	PlannedJob struct {
		Job     string `json:"job"`
		Planned []int  `json:"planned"`
		Used    []int  `json:"used"`
	}

	// PlannedOthers sums up the jobs that the user may not see.
	PlannedOthers struct {
		Planned []int `json:"planned"`
		Used    []int `json:"used"`
	}
)

func (h *handler) plans(ctx context.Context, r *http.Request) (any, error) {
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	past, err := h.Server.PastPlans(ctx)
	if err != nil {
		return nil, err
	}
	caller, answer := h.caller(r), Plans{}
	for i, kind := range []wire.Kind{wire.Map, wire.Reduce} {
		answer.Items = append(answer.Items, plannedPhase(&past[i], kind, func(j *pastplans.Job) bool { return caller.MayView(j.Owner, j.Access) }))
	}
	return answer, nil
}

func plannedPhase(v *pastplans.View, kind wire.Kind, visible func(*pastplans.Job) bool) PlannedPhase {
	n := len(v.Samples)
	p := PlannedPhase{
		Phase: kind.String(), Since: timeOf(v.Since), Times: make([]time.Time, n), Slots: make([]int, n), Jobs: []PlannedJob{},
		Others: PlannedOthers{make([]int, n), make([]int, n)},
	}
	const hidden = -1
	index := make(map[*pastplans.Job]int) // in p.Jobs, or hidden
	for i, s := range v.Samples {
		p.Times[i], p.Slots[i] = timeOf(s.At), s.Slots
		for _, e := range s.Entries {
			k, known := index[e.Job]
			if !known {
				if k = hidden; visible(e.Job) {
					k = len(p.Jobs)
					p.Jobs = append(p.Jobs, PlannedJob{e.ID.String(), make([]int, n), make([]int, n)})
				}
				index[e.Job] = k
			}
			if k == hidden {
				p.Others.Planned[i] += int(e.Planned)
				p.Others.Used[i] += int(e.Used)
				continue
			}
			p.Jobs[k].Planned[i], p.Jobs[k].Used[i] = int(e.Planned), int(e.Used)
		}
	}
	slices.SortFunc(p.Jobs, func(a, b PlannedJob) int {
		return cmp.Or(cmp.Compare(len(a.Job), len(b.Job)), cmp.Compare(a.Job, b.Job))
	})
	return p
}
