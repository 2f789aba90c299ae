// Package top shows a cluster and its jobs on a terminal, and follows their changes: mrsubmit top.
//
// The screen is a function of values: [Model] has all that is shown, and keys and news of the cluster
// make another Model. A library for this (Bubble Tea) was a twentieth of the first build of mrsubmit, for
// a screen that needs no cursor, no mouse and twenty keys: see screen.
//
// Invariants
//
//	T1  No line is wider than the terminal, and there are no more lines than fit.
//	T2  Texts of jobs and task trackers have no control characters.
//	T3  Without colors, all that they say is there as text.
package top

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// Cluster has the methods of web.Client that this package calls.
type Cluster interface {
	Follow(ctx context.Context) iter.Seq2[[]web.Job, error]
	Cluster(ctx context.Context) (*web.Cluster, error)
}

// clusterPause is the pause between two requests for the state of the cluster, which has no events.
const clusterPause = 2 * time.Second

// Run shows the cluster on a terminal until the user quits or ctx ends.
func Run(ctx context.Context, c Cluster, in, out *os.File, colors bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := open(in, out)
	if err != nil {
		return err
	}
	defer s.close()
	news := make(chan message)
	send := func(m message) {
		select {
		case news <- m:
		case <-ctx.Done():
		}
	}
	go followJobs(ctx, c, send)
	go pollCluster(ctx, c, send)
	go s.readKeys(send)
	go everySecond(ctx, send)
	m := New(time.Now(), colors)
	for {
		m.width, m.height = s.size()
		if err := s.draw(m.Text()); err != nil {
			return fmt.Errorf("draw on the terminal: %w", err)
		}
		select {
		case next := <-news:
			if m = m.Update(next); m.quit {
				return nil
			}
		case <-ctx.Done(): // an interrupt is a usual end
			return nil
		}
	}
}

// everySecond makes elapsed times grow, and notices another size of the terminal.
func everySecond(ctx context.Context, send func(message)) {
	for ctx.Err() == nil {
		wait(ctx, time.Second)
		send(Tick{time.Now()})
	}
}

func followJobs(ctx context.Context, c Cluster, send func(message)) {
	for ctx.Err() == nil {
		for jobs, err := range c.Follow(ctx) {
			if err != nil {
				send(Trouble{err.Error()})
				break
			}
			send(Jobs{time.Now(), jobs})
		}
		wait(ctx, clusterPause)
	}
}

func pollCluster(ctx context.Context, c Cluster, send func(message)) {
	for ctx.Err() == nil {
		if status, err := c.Cluster(ctx); err != nil {
			send(Trouble{err.Error()})
		} else {
			send(Status{status})
		}
		wait(ctx, clusterPause)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// message is one of the types below.
type message any

// Messages to a Model.
type (
	// Jobs has the jobs that have changed.
	Jobs struct {
		At    time.Time
		Items []web.Job
	}
	// Status has the state of the cluster.
	Status struct{ Cluster *web.Cluster }
	// Trouble says why there is no news.
	Trouble struct{ Text string }
	// Tick says that time has passed.
	Tick struct{ At time.Time }
	// Key is the name of a key, such as "esc" or "pgdown", or the character that it types.
	Key string
)

// Model is all that is shown. It is a value: Update returns another one.
type Model struct {
	now     time.Time
	jobs    map[wire.JobID]job
	cluster *web.Cluster // nil: not known yet
	trouble string       // why there is no news; empty: there is

	colors        bool
	quit          bool // the user has enough
	width, height int
	order         int // index in orders
	reversed      bool
	ended         bool   // ended jobs are shown, too
	filter        string // only jobs with this text
	typing        bool   // keys change the filter
	trackers      bool   // task trackers are shown instead of jobs
	first         int    // index of the first row that is shown
}

// job is a job as it was at a time.
type job struct {
	web.Job
	id wire.JobID
	at time.Time
}

// New returns a Model that knows nothing yet.
func New(now time.Time, colors bool) Model {
	return Model{now: now, colors: colors, jobs: make(map[wire.JobID]job), width: 80, height: 24}
}

// Update returns the Model after a message.
func (m Model) Update(msg message) Model {
	switch msg := msg.(type) {
	case Key:
		return m.key(string(msg))
	case Jobs:
		m.trouble, m.jobs = "", maps.Clone(m.jobs)
		for _, j := range msg.Items {
			if id, err := wire.ParseJobID(j.ID); err == nil {
				m.jobs[id] = job{j, id, msg.At}
			}
		}
	case Status:
		m.trouble, m.cluster = "", msg.Cluster
	case Trouble:
		m.trouble = client.OneLine(msg.Text)
	case Tick:
		m.now = msg.At
	}
	return m
}

func (m Model) key(name string) Model {
	if m.typing {
		switch name {
		case "enter":
			m.typing = false
		case "esc":
			m.typing, m.filter = false, ""
		case "backspace":
			if runes := []rune(m.filter); len(runes) > 0 {
				m.filter = string(runes[:len(runes)-1])
			}
		case "ctrl+c":
			m.quit = true
		default:
			if utf8.RuneCountInString(name) == 1 {
				m.filter += name
			}
		}
		m.first = 0
		return m
	}
	switch name {
	case "q", "ctrl+c":
		m.quit = true
	case "/":
		m.typing, m.filter, m.trackers = true, "", false
	case "esc":
		m.filter = ""
	case "s":
		m.order = (m.order + 1) % len(orders())
	case "r":
		m.reversed = !m.reversed
	case "e":
		m.ended = !m.ended
	case "t":
		m.trackers, m.first = !m.trackers, 0
	case "up", "k":
		m.first--
	case "down", "j":
		m.first++
	case "pgup":
		m.first -= m.height / 2
	case "pgdown":
		m.first += m.height / 2
	}
	m.first = max(m.first, 0)
	return m
}

// order is an order of jobs by one of their values. Jobs with equal values are newest first.
type order struct {
	name    string
	compare func(a, b *job) int
}

func orders() []order {
	return []order{
		{"newest", newestFirst},
		{"end", func(a, b *job) int { return cmp.Compare(endOf(a), endOf(b)) }},
		{"elapsed", func(a, b *job) int { return cmp.Compare(b.ElapsedMillis, a.ElapsedMillis) }},
		{"name", func(a, b *job) int { return cmp.Compare(a.Name, b.Name) }},
		{"owner", func(a, b *job) int { return cmp.Compare(a.Owner, b.Owner) }},
		{"pool", func(a, b *job) int { return cmp.Compare(a.Settings.Pool, b.Settings.Pool) }},
		{"state", func(a, b *job) int { return cmp.Compare(a.State, b.State) }},
	}
}

func newestFirst(a, b *job) int { return b.id.Compare(a.id) }

// endOf returns when a job will probably end, in milliseconds from now. Jobs with an unknown end come last.
func endOf(j *job) int64 {
	s, err := j.Status()
	if err != nil || !s.Prediction.Known() {
		return 1 << 62
	}
	return s.Prediction.Likely.Milliseconds() - j.ElapsedMillis
}

// shown lists the jobs that are shown, in their order.
func (m Model) shown() []*job {
	var list []*job
	for _, j := range m.jobs {
		if (m.ended || !isEnded(j.State)) && j.has(m.filter) {
			list = append(list, &j)
		}
	}
	by := orders()[m.order].compare
	slices.SortFunc(list, func(a, b *job) int {
		n := by(a, b)
		if m.reversed {
			n = -n
		}
		return cmp.Or(n, newestFirst(a, b))
	})
	return list
}

func isEnded(state string) bool {
	return slices.Contains([]string{wire.Succeeded.String(), wire.Failed.String(), wire.Killed.String()}, state)
}

// has reports whether a job has a text in one of its columns.
func (j *job) has(text string) bool {
	return strings.Contains(strings.ToLower(strings.Join([]string{j.ID, j.Name, j.Owner, j.Settings.Pool, j.State, j.Flow}, " ")), strings.ToLower(text))
}
