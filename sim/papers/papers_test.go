package papers_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/sim/papers"
)

func report() *papers.Report {
	row := papers.Row{Paper: "p", Figure: "f", Point: "x=1", Policy: "FAIR", Statistic: "avg"}
	inBand, missed, noValue := row, row, row
	inBand.Value, inBand.Published, inBand.Low, inBand.High = papers.Num(1.54), papers.Num(1.54), papers.Num(1.51), papers.Num(1.57)
	missed.Value, missed.High = papers.Num(1.25), papers.Num(1.001)
	noValue.Figure = "g"
	return &papers.Report{
		Paper: "p", Rows: []papers.Row{inBand, missed, noValue},
		Charts: []papers.Chart{
			{Name: "lines", X: "x", Y: "y", Series: []papers.Series{{Name: "a <b>", X: []float64{0, 1}, Y: []float64{1, 2}}, {Name: "c", X: []float64{0, 1}, Y: []float64{1, 3}, Dashed: true}}},
			{Name: "bars", Groups: []string{"g", "h"}, Top: 2, Series: []papers.Series{{Name: "a", Y: []float64{1, 7}}, {Name: "b", Y: []float64{1, 2}}}},
		},
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := report().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"paper":"p","figure":"f","point":"x=1","policy":"FAIR","statistic":"avg","value":1.54,"paper_value":1.54,"low":1.51,"high":1.57}
{"paper":"p","figure":"f","point":"x=1","policy":"FAIR","statistic":"avg","value":1.25,"paper_value":null,"low":null,"high":1.001}
{"paper":"p","figure":"g","point":"x=1","policy":"FAIR","statistic":"avg","value":null,"paper_value":null,"low":null,"high":null}
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestTables(t *testing.T) {
	r := report()
	var out bytes.Buffer
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"figure  point  policy  statistic  measured  published  band",
		"f       x=1    FAIR    avg        1.54      1.54       1.51 – 1.57  ok",
		"f       x=1    FAIR    avg        1.25      –          ≤ 1.001      MISSED",
		"g       x=1    FAIR    avg        –         –",
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if strings.TrimSpace(line) != want[i] {
			t.Errorf("line %d is %q", i, line)
		}
	}
	out.Reset()
	if err := r.WriteMarkdown(&out, "g"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(out.String(), "\n"); len(got) != 4 || got[2] != "| x=1 | FAIR | avg | – | – |  |  |" {
		t.Errorf("markdown %q", got)
	}
	if missed := r.Missed(); len(missed) != 1 || *missed[0].Value != 1.25 {
		t.Errorf("missed %+v", missed)
	}
}

func TestCharts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	names, err := report().WriteCharts(dir)
	if err != nil || len(names) != 2 {
		t.Fatalf("%v: %v", names, err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for d := xml.NewDecoder(f); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	var drawn bytes.Buffer
	steps := papers.Chart{Series: []papers.Series{{Name: "s", X: []float64{0, 75, 95}, Y: []float64{1, 2, 3}}}}
	if err := steps.WriteSVG(&drawn); err != nil || !strings.Contains(drawn.String(), ">75</text>") {
		t.Errorf("the axis lacks the label of a point: %v\n%s", err, drawn.String())
	}
	narrow := papers.Chart{Series: []papers.Series{{Name: "s", X: []float64{0.25, 0.5, 1, 8}, Y: []float64{1, 2, 3, 4}}}}
	drawn.Reset()
	if err := narrow.WriteSVG(&drawn); err != nil || !strings.Contains(drawn.String(), ">0.25</text>") || strings.Contains(drawn.String(), ">0.5</text>") {
		t.Errorf("labels of points overlap: %v\n%s", err, drawn.String())
	}
	bad := &papers.Report{Charts: []papers.Chart{{Name: "x", Series: []papers.Series{{Name: "s", X: []float64{1}, Y: []float64{math.NaN()}}}}}}
	if _, err := bad.WriteCharts(dir); err == nil || !strings.Contains(err.Error(), "x.svg: s: ") {
		t.Errorf("a chart with NaN gives %v", err)
	}
}

// TestManyLines: seven lines have seven colours, and the legend is as wide as its names.
func TestManyLines(t *testing.T) {
	var c papers.Chart
	for i := range 7 {
		c.Series = append(c.Series, papers.Series{Name: strconv.Itoa(i), X: []float64{0, 1}, Y: []float64{0, float64(i)}})
	}
	draw := func() (width float64, colors map[string]bool) {
		var out strings.Builder
		if err := c.WriteSVG(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(out.String()[strings.Index(out.String(), "viewBox"):], "viewBox=\"0 0 %f ", &width); err != nil {
			t.Fatal(err)
		}
		colors = make(map[string]bool)
		for _, match := range regexp.MustCompile(`stroke:(#[0-9A-F]{6});stroke-width:1.5`).FindAllStringSubmatch(out.String(), -1) {
			colors[match[1]] = true
		}
		return width, colors
	}
	narrow, colors := draw()
	if len(colors) != len(c.Series) {
		t.Errorf("%d colours of %d lines: %v", len(colors), len(c.Series), colors)
	}
	c.Series[0].Name = strings.Repeat("wide ", 10)
	if wide, _ := draw(); wide < narrow+100 {
		t.Errorf("the legend leaves no room for a long name: %v wide, %v before", wide, narrow)
	}
}

func TestEach(t *testing.T) {
	ctx := context.Background()
	got, err := papers.Each(ctx, nil, 100, func(i int) (int, error) { return i * i, nil })
	if err != nil || len(got) != 100 || got[99] != 99*99 {
		t.Fatalf("%v: %v", got, err)
	}
	failed := errors.New("bad luck")
	_, err = papers.Each(ctx, nil, 100, func(i int) (int, error) {
		if i == 7 {
			return 0, failed
		}
		return i, nil
	})
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "experiment 7") {
		t.Fatalf("error %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var ran atomic.Int64
	_, err = papers.Each(ctx, nil, 1000, func(i int) (int, error) {
		if ran.Add(1) == 3 {
			cancel()
		}
		return 0, nil
	})
	if !errors.Is(err, context.Canceled) || ran.Load() > 100 {
		t.Fatalf("after %d experiments: %v", ran.Load(), err)
	}
}

func TestRand(t *testing.T) {
	draws := make(map[uint64]string)
	for _, stream := range []string{"", "a", "b", "ab", "ba"} {
		for seed := range uint64(3) {
			for i := range 3 {
				x := papers.Rand(seed, stream, i).Uint64()
				if x != papers.Rand(seed, stream, i).Uint64() {
					t.Fatal("the same stream gives other numbers")
				}
				if other, ok := draws[x]; ok {
					t.Fatalf("%q and %q draw the same", stream, other)
				}
				draws[x] = fmt.Sprint(stream, seed, i)
			}
		}
	}
}

func TestStatistics(t *testing.T) {
	values := []float64{4, 1, 3}
	if m := papers.Mean(values); math.Abs(m-8.0/3) > 1e-12 {
		t.Errorf("mean %v", m)
	}
	if papers.Largest(values) != 4 || papers.Quantile(values, 0) != 1 || papers.Quantile(values, 1) != 4 ||
		papers.Quantile(values, 0.5) != 3 || papers.Quantile(values, 0.25) != 2 {
		t.Errorf("quantiles of %v", values)
	}
	if !slices.Equal(values, []float64{4, 1, 3}) {
		t.Error("values were sorted in place")
	}
	for _, x := range []float64{papers.Mean(nil), papers.Largest(nil), papers.Quantile(nil, 0.5)} {
		if papers.Num(x) != nil {
			t.Errorf("a statistic of no values is %v", x)
		}
	}
}
