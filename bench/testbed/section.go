package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/integration/processes"
)

// Section is a benchmark: go run ./bench NAME [flags].
type Section struct {
	Name, About string

	// Defaults of shared flags; zero: the section lacks the flag.
	Runs, Seeds, Cores int
	Size, Scale        string
	Flags              func(*flag.FlagSet) // defines the section's own flags; may be nil

	Programs []string           // built into Bench.Programs, by package; see [processes.Build]
	Open     func(*Bench) error // called once before the parts; may be nil
	Columns  []string           // of one table for all parts; nil: each part has a heading and a table
	Parts    []Part
}

// Part is a measurement that -only can select.
type Part struct {
	Name    string
	Columns []string // of its table; nil: Measure prints its own tables
	Measure func() error
}

// Bench is a run of a section.
type Bench struct {
	Ctx     context.Context
	Dir     string // absolute
	Runs    int
	Cores   int
	Bytes   int64  // -size
	Scale   string // of TPC-H
	Seed    uint64 // the first of the seeds
	Verbose bool

	seeds    int
	settings string
	clusters atomic.Int64 // started so far
	cleanups []func() error
}

// Run measures the parts that the arguments select, and prints the figures.
func (s *Section) Run(ctx context.Context, args []string) (err error) {
	b, parts, err := s.parse(args)
	if err != nil {
		return err
	}
	fmt.Printf("bench %s%s; %d cores, %s\n", s.Name, b.settings, runtime.NumCPU(), runtime.Version())
	b.Ctx = ctx
	defer func() { err = errors.Join(err, b.cleanUp()) }()
	if b.Dir == "" {
		if b.Dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
			return err
		}
		b.AtEnd(func() error { return os.RemoveAll(b.Dir) })
	}
	if b.Dir, err = filepath.Abs(b.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(b.Programs(), 0o777); err != nil {
		return err
	}
	if s.Programs != nil {
		if err := processes.Build(b.Programs(), s.Programs...); err != nil {
			return err
		}
	}
	if s.Open != nil {
		if err := s.Open(b); err != nil {
			return err
		}
	}
	if s.Columns != nil {
		fmt.Println()
		Table(s.Columns...)
	}
	for _, p := range parts {
		measure := p.Measure
		if s.Columns == nil {
			measure = p.measureWithHeading
		}
		if err := measure(); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// measureWithHeading prints a heading, the part's figures and the part's time.
func (p *Part) measureWithHeading() error {
	fmt.Printf("\n## %s\n\n", p.Name)
	if p.Columns != nil {
		Table(p.Columns...)
	}
	began, before := time.Now(), load()
	if err := p.Measure(); err != nil {
		return err
	}
	fmt.Printf("\nThis part took %v. The machine's load was %s before it and is %s.\n", time.Since(began).Round(time.Second), before, load())
	return nil
}

// parse reads the arguments. With -h it prints the flags and returns [flag.ErrHelp].
func (s *Section) parse(args []string) (*Bench, []Part, error) {
	b := &Bench{}
	f := flag.NewFlagSet("bench "+s.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // the caller prints the error
	only, size := ".", s.Size
	f.StringVar(&only, "only", only, "`regexp` of the parts to measure, among:\n"+strings.Join(s.names(), "\n"))
	f.StringVar(&b.Dir, "dir", "", "working `directory`, kept with the inputs; default: a temporary one, removed")
	if s.Runs > 0 {
		f.IntVar(&b.Runs, "runs", s.Runs, "`number` of measurements of each figure; the median is printed")
	}
	if s.Cores > 0 {
		f.IntVar(&b.Cores, "cores", s.Cores, "map and reduce `slots`, and the cores that peers may use")
	}
	if s.Size != "" {
		f.StringVar(&size, "size", size, "`bytes` of input, with K, M or G")
	}
	if s.Scale != "" {
		f.StringVar(&b.Scale, "scale", s.Scale, "TPC-H's scale `factor`; 1 is a gigabyte")
	}
	if s.Seeds > 0 {
		f.IntVar(&b.seeds, "seeds", s.Seeds, "`number` of seeds; some parts use fewer")
		f.Uint64Var(&b.Seed, "seed", 1, "the first `seed`; the others follow it")
		f.BoolVar(&b.Verbose, "v", false, "print the time of each run")
	}
	if s.Flags != nil {
		s.Flags(f)
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(os.Stdout)
			fmt.Printf("go run ./bench %s: %s\n", s.Name, s.About)
			f.PrintDefaults()
		}
		return nil, nil, err
	}
	if f.NArg() > 0 {
		return nil, nil, fmt.Errorf("%q is not a flag: see -h", f.Arg(0))
	}
	if err := b.checkPositive(f); err != nil {
		return nil, nil, err
	}
	if s.Size != "" {
		var err error
		if b.Bytes, err = input.Size(size); err != nil {
			return nil, nil, fmt.Errorf("-size: %w", err)
		}
	}
	parts, err := s.selectParts(only)
	return b, parts, err
}

// checkPositive refuses numbers that are not positive, and records all values for the heading.
func (b *Bench) checkPositive(f *flag.FlagSet) (err error) {
	f.VisitAll(func(x *flag.Flag) {
		if n, is := x.Value.(flag.Getter).Get().(int); is && n < 1 && err == nil {
			err = fmt.Errorf("-%s must be positive, got %d", x.Name, n)
		}
		if value := x.Value.String(); value != "" {
			b.settings += fmt.Sprintf(" -%s %s", x.Name, value)
		}
	})
	return err
}

func (s *Section) names() (names []string) {
	for _, p := range s.Parts {
		names = append(names, p.Name)
	}
	return names
}

// selectParts returns the parts with names that match an expression. It fails if none matches.
func (s *Section) selectParts(only string) (parts []Part, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for _, p := range s.Parts {
		if match.MatchString(p.Name) {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("-only %s matches none of: %s", only, strings.Join(s.names(), "; "))
	}
	return parts, nil
}

// AtEnd registers a cleanup for the end of the section. Cleanups run in reverse order.
func (b *Bench) AtEnd(do func() error) { b.cleanups = append(b.cleanups, do) }

func (b *Bench) cleanUp() error {
	var errs []error
	for _, do := range slices.Backward(b.cleanups) {
		errs = append(errs, do())
	}
	return errors.Join(errs...)
}

// Path returns the path of a file in the working directory.
func (b *Bench) Path(name string) string { return filepath.Join(b.Dir, name) }

// Programs is the directory of the programs that the section runs.
func (b *Bench) Programs() string { return b.Path("programs") }

// Program returns the path of a program in Programs.
func (b *Bench) Program(name string) string { return filepath.Join(b.Programs(), name) }

// Seeds returns the first n seeds, at most -seeds.
func (b *Bench) Seeds(n int) []uint64 {
	var seeds []uint64
	for i := range min(n, b.seeds) {
		seeds = append(seeds, b.Seed+uint64(i))
	}
	return seeds
}

// Logf prints progress with -v.
func (b *Bench) Logf(format string, args ...any) {
	if b.Verbose {
		fmt.Printf(format+"\n", args...)
	}
}
