package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/settings"
)

// Trackers may offer memory and cores beside slots, and tasks request parts of that: see package
// assign. The scheduler plans slots, so it sees slots that fit.

// requests returns what the job's tasks request beside a slot, by phase. A job that asked for no
// memory requests none, though the administrator's maximum limits its attempts.
func (s *jobSpec) requests(asked settings.Settings) [2]assign.Room {
	return [2]assign.Room{
		mapPhase:    {Memory: min(asked.Maps.MaxMemory, s.Maps.MaxMemory), Cores: s.Maps.Cores},
		reducePhase: {Memory: min(asked.Reduces.MaxMemory, s.Reduces.MaxMemory), Cores: s.Reduces.Cores},
	}
}

// smallestRequests returns the requests that are not as large as another one in both memory and cores, by
// memory. There are at most as many as different numbers of cores.
func smallestRequests[T any](requests map[assign.Room]T) (smallest []assign.Room) {
	sorted := slices.SortedFunc(maps.Keys(requests), func(a, b assign.Room) int {
		return cmp.Or(cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Cores, b.Cores))
	})
	for _, r := range sorted {
		if n := len(smallest); n == 0 || r.Cores < smallest[n-1].Cores {
			smallest = append(smallest, r)
		}
	}
	return smallest
}

// canHost reports whether a tracker may be the home of a job's partitions. If its offer is too small
// for the reduces, it is no home, unless that is so of all trackers.
func (l *leader) canHost(j *job, t *tracker) bool {
	return t.canBeHome() && (t.assign.CouldHold(&j.assign, reducePhase) || j.assign.Fits(reducePhase) == 0)
}

// limitByRoom limits the useful slots of a job to those that fit, if not all slots of the cluster do.
// It returns the tasks for them, or 0 if the job is not limited.
func (l *leader) limitByRoom(j *job, phase, useful int) (slots, tasks int) {
	fits := j.assign.Fits(phase)
	if fits >= l.fleet.slots[phase] {
		return useful, 0
	}
	if slots = max(fits, j.assign.UsedSlots(phase)); slots >= useful {
		return useful, 0
	}
	return slots, useful
}

// addRoom adds requests that free slots, or all trackers, have no room for.
func (h *holdList) addRoom(l *leader, j *job) {
	for i, kind := range phaseNames {
		request := j.assign.Request(i)
		switch {
		case l.toLaunch(j, i) == 0:
		case request == assign.Room{}:
			if l.assign.FreeTrackers(i).Len() > 0 && j.assign.FreeFor(i).Len() == 0 {
				h.add(0, "all free %s slots are on trackers that are saved for tasks with other requests", kind)
			}
		case j.assign.Fits(i) == 0:
			if offer, name := l.largestOffer(i); name != "" {
				h.add(0, "each %s requests %s, more than any tracker offers: the largest offer is %s, of tracker %s", kind, roomText(request), roomText(offer), name)
			}
		case l.assign.FreeTrackers(i).Len() > 0 && j.assign.FreeFor(i).Len() == 0:
			text := ""
			if t := j.assign.SavedFor(i); t != nil {
				text = fmt.Sprintf("; tracker %s is saved for it, until enough of its attempts have ended", trackerOf(t).Name)
			}
			h.add(0, "each %s requests %s, more than trackers with a free slot have left%s", kind, roomText(request), text)
		}
	}
}

// largestOffer returns the offer with the most memory of the trackers in service with slots of a phase,
// and the tracker's name. Among equals it has the most cores.
func (l *leader) largestOffer(phase int) (largest assign.Room, name string) {
	for _, t := range l.fleet.byIndex {
		if t == nil || !t.takesWork() || t.slots[phase] == 0 {
			continue
		}
		x := t.assign.Offer()
		if c := cmp.Or(cmp.Compare(x.Memory, largest.Memory), cmp.Compare(x.Cores, largest.Cores), cmp.Compare(name, t.Name)); name == "" || c > 0 {
			largest, name = x, t.Name
		}
	}
	return largest, name
}

// roomText names memory and cores.
func roomText(r assign.Room) string {
	var parts []string
	if r.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB of memory", r.Memory>>20))
	}
	if r.Cores > 0 {
		parts = append(parts, plural(r.Cores, "core"))
	}
	return strings.Join(parts, " and ")
}
