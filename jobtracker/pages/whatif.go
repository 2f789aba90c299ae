package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/scheduler"
)

// whatIfPage shows what each scheduler would make of the jobs that have not ended.
type whatIfPage struct {
	schedulerHead
	WhatIf  web.WhatIf
	Rows    []whatIfRow
	Metrics []comparedMetric
	Ends    []comparedEnd
	Names   []string // of the schedulers that have a prediction, in the order of the columns
	More    int      // jobs that Ends leaves out
}

// whatIfRow is a scheduler.
type whatIfRow struct {
	web.WhatIfScheduler
	Value float64 // of the current metric
	Known bool    // the prediction has the metric
	Part  float64 // of the largest value, from 0 to 1
	Best  bool
}

// comparedMetric has the values of a metric under each scheduler.
type comparedMetric struct {
	Name    string
	Current bool
	Values  []comparedValue
}

type comparedValue struct {
	Text string
	Best bool
}

// comparedEnd says when a job would end under each scheduler.
type comparedEnd struct {
	jobRow
	Ends []comparedTime
}

type comparedTime struct {
	Text        string // time from now; empty: not known
	Late, First bool
}

// endsOfPage is the number of jobs that the page shows.
const endsOfPage = 50

func (h *handler) whatIf(r *http.Request) (any, error) {
	cluster, err := h.led(r)
	if err != nil {
		return nil, err
	}
	page := &whatIfPage{schedulerHead: h.schedulerHead(r, &cluster, "whatif")}
	if err := h.get(r, "/v1/scheduling/whatif", nil, &page.WhatIf); err != nil {
		return nil, err
	}
	jobs, _, err := readList[web.Job](h, r, "/v1/jobs", url.Values{"state": states[1:6]}, maxJobs)
	if err != nil {
		return nil, err
	}
	page.setRows()
	page.setMetrics()
	page.setEnds(jobs, h.now())
	return page, nil
}

// setRows sorts the schedulers by the current metric, the best first; those without a prediction come last.
func (p *whatIfPage) setRows() {
	most := 0.0
	for _, x := range p.WhatIf.Items {
		row := whatIfRow{WhatIfScheduler: x}
		row.Value, row.Known = x.Metrics[p.Metric]
		most = max(most, row.Value)
		p.Rows = append(p.Rows, row)
	}
	slices.SortStableFunc(p.Rows, func(a, b whatIfRow) int {
		return cmp.Or(cmp.Compare(len(a.Unknown), len(b.Unknown)), cmp.Compare(a.Value, b.Value))
	})
	for i := range p.Rows {
		row := &p.Rows[i]
		if most > 0 {
			row.Part = max(0, row.Value/most)
		}
		row.Best = row.Unknown == "" && row.Known && row.Value == p.Rows[0].Value
		if row.Unknown == "" {
			p.Names = append(p.Names, row.Scheduler)
		}
	}
}

func (p *whatIfPage) setMetrics() {
	for _, name := range scheduler.MetricNames() {
		m := comparedMetric{Name: name, Current: name == p.Metric}
		least, some := 0.0, false
		for i := range p.Rows {
			if v, ok := p.Rows[i].Metrics[name]; ok && (!some || v < least) {
				least, some = v, true
			}
		}
		for i := range p.Rows[:len(p.Names)] {
			value := comparedValue{Text: "–"}
			if v, ok := p.Rows[i].Metrics[name]; ok {
				value = comparedValue{number(v), v <= least}
			}
			m.Values = append(m.Values, value)
		}
		if some {
			p.Metrics = append(p.Metrics, m)
		}
	}
}

// number formats a value of a metric with four digits.
func number(v float64) string {
	if v >= 1000 {
		return grouped(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func (p *whatIfPage) setEnds(jobs []web.Job, now time.Time) {
	ends := make([]map[string]int64, len(p.Names)) // milliseconds since the submission, by job
	for i := range ends {
		ends[i] = make(map[string]int64)
		for _, j := range p.Rows[i].Jobs {
			ends[i][j.Job] = j.EndMillis
		}
	}
	for _, row := range rowsOf(jobs) {
		e := comparedEnd{jobRow: row}
		first, known := int64(0), false
		for i := range ends {
			if ms, ok := ends[i][row.ID]; ok && (!known || ms < first) {
				first, known = ms, true
			}
		}
		if !known {
			continue
		}
		if len(p.Ends) == endsOfPage {
			p.More++
			continue
		}
		for i := range ends {
			ms, ok := ends[i][row.ID]
			t := comparedTime{First: ok && ms == first, Late: row.Settings.DeadlineMillis > 0 && ms > row.Settings.DeadlineMillis}
			if ok {
				t.Text = span(max(0, ms-row.ElapsedMillis))
			}
			e.Ends = append(e.Ends, t)
		}
		p.Ends = append(p.Ends, e)
	}
}

// Seconds formats seconds.
func (*whatIfPage) Seconds(s float64) string { return span(int64(s * 1000)) }

// Stretch formats a stretch.
func (*whatIfPage) Stretch(s float64) string { return fmt.Sprintf("%.2f", s) }

// Number formats a value of a metric.
func (*whatIfPage) Number(v float64) string { return number(v) }
