// Package papers is the common part of the reproductions of the papers. It runs experiments on
// all cores, each with random numbers of its own, and writes the resulting figures as tables,
// JSON lines, plots and pages.
//
// Each paper has a subpackage with an engine for the paper's model, described in its package
// comment. The engines share no loop, because their events differ. In flex jobs end and slots
// are divided again. In flowflex and hmhs one plan schedules everything. In delay tasks wait
// for slots on nodes with their data. In overlap work flows through queues.
//
// Results depend only on the seed and the number of experiments, not on the number of cores or
// the order in which experiments end.
package papers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the settings of every paper's simulation.
type Options struct {
	Seed        uint64
	Experiments int       // per figure; 0: the paper's own default
	Progress    io.Writer // destination of progress lines; nil: none
}

// Report is the reproduced figures of a paper.
type Report struct {
	Paper   string
	Options Options // as used: Experiments is the actual number
	Rows    []Row
	Charts  []Chart
}

// Row is one number of one figure.
type Row struct {
	Paper     string   `json:"paper"`
	Figure    string   `json:"figure"`
	Point     string   `json:"point"`
	Policy    string   `json:"policy"`
	Statistic string   `json:"statistic"`
	Value     *float64 `json:"value"`       // nil: no value
	Published *float64 `json:"paper_value"` // nil: the paper has no such number
	Low       *float64 `json:"low"`         // least value within the band; nil: no limit
	High      *float64 `json:"high"`        // greatest value within the band; nil: no limit
}

// Num returns a pointer to x, or nil for NaN and infinities.
func Num(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Within reports whether the row has a band and whether its value is in it.
func (r Row) Within() (tested, ok bool) {
	if r.Low == nil && r.High == nil {
		return false, true
	}
	ok = r.Value != nil && (r.Low == nil || *r.Value >= *r.Low) && (r.High == nil || *r.Value <= *r.High)
	return true, ok
}

// Mark returns the mark that a page adds to a number outside its band.
func (r Row) Mark() string {
	if _, ok := r.Within(); ok {
		return ""
	}
	return " **missed**"
}

// Find returns a row, or one without a value if it is missing.
func (r *Report) Find(figure, point, policy, statistic string) Row {
	i := slices.IndexFunc(r.Rows, func(r Row) bool {
		return r.Figure == figure && r.Point == point && r.Policy == policy && r.Statistic == statistic
	})
	if i < 0 {
		return Row{}
	}
	return r.Rows[i]
}

// Points lists a figure's points in the order of the rows.
func (r *Report) Points(figure string) (points []string) {
	for _, row := range r.Rows {
		if row.Figure == figure && !slices.Contains(points, row.Point) {
			points = append(points, row.Point)
		}
	}
	return points
}

// Verdict returns a page's sentence on whether all figures are in their bands.
func (r *Report) Verdict() string {
	if missed := r.Missed(); len(missed) > 0 {
		return fmt.Sprintf("**%d figures are outside their bands**; they are marked below.", len(missed))
	}
	return "Every figure with a band is in it."
}

// Missed lists the rows outside their bands.
func (r *Report) Missed() []Row {
	var missed []Row
	for _, row := range r.Rows {
		if _, ok := row.Within(); !ok {
			missed = append(missed, row)
		}
	}
	return missed
}

// WriteJSON writes one object per row.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	for _, row := range r.Rows {
		if err := encoder.Encode(row); err != nil {
			return fmt.Errorf("row %s %s: %w", row.Figure, row.Point, err)
		}
	}
	return nil
}

// Rand returns the random numbers of experiment i in a named stream. They are independent of
// the numbers of other streams, experiments and seeds.
func Rand(seed uint64, stream string, i int) *rand.Rand {
	h := fnv.New64a() // never changes, unlike hash/maphash
	fmt.Fprintf(h, "%d %s", seed, stream)
	return rand.New(rand.NewPCG(h.Sum64(), uint64(i)))
}

// Each runs experiments 0 to n-1 on all cores and returns their results by number. It stops
// early when ctx ends or an experiment fails. If several fail, it returns the error of the one
// with the lowest number.
func Each[T any](ctx context.Context, p *Progress, n int, run func(i int) (T, error)) ([]T, error) {
	results, errs := make([]T, n), make([]error, n)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if results[i], errs[i] = run(i); errs[i] != nil {
					cancel()
				}
				p.step()
			}
		})
	}
	workers.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("experiment %d: %w", i, err)
		}
	}
	if int(next.Load()) < n {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// Run is Each with progress lines. These lines and the errors begin with the name.
func Run[T any](ctx context.Context, o Options, name string, n int, run func(i int) (T, error)) ([]T, error) {
	all, err := Each(ctx, NewProgress(o.Progress, name, n), n, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// RunFigures runs the figures one after the other, until one fails.
func RunFigures(figures ...func() error) error {
	for _, figure := range figures {
		if err := figure(); err != nil {
			return err
		}
	}
	return nil
}

// Progress prints the number of finished experiments from time to time. The nil Progress is
// silent.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	name    string
	done    int
	total   int
	began   time.Time
	printed time.Time
}

// NewProgress reports on total experiments to w; w may be nil.
func NewProgress(w io.Writer, name string, total int) *Progress {
	if w == nil {
		return nil
	}
	now := time.Now()
	return &Progress{w: w, name: name, total: total, began: now, printed: now}
}

// progressGap is the time between two lines.
const progressGap = 5 * time.Second

func (p *Progress) step() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	now := time.Now()
	if now.Sub(p.printed) < progressGap {
		return
	}
	p.printed = now
	left := time.Duration(float64(now.Sub(p.began)) / float64(p.done) * float64(p.total-p.done))
	fmt.Fprintf(p.w, "%s: %d of %d experiments, about %v left\n", p.name, p.done, p.total, left.Round(time.Second))
}

// Mean returns the mean of values, NaN for none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Largest returns the largest of values, NaN for none.
func Largest(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

// Quantile returns quantile q, from 0 to 1, of values by interpolation; NaN for none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
