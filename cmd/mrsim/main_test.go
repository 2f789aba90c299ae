package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/sim/papers"
)

// tiny is a paper with one figure.
func tiny(value float64) paper {
	return paper{
		name: "tiny",
		simulate: func(ctx context.Context, o papers.Options) (*papers.Report, error) {
			if o.Seed == 13 {
				return nil, errors.New("bad luck")
			}
			row := papers.Row{Paper: "tiny", Figure: "f", Point: fmt.Sprint(o.Seed, o.Experiments), Value: papers.Num(value), High: papers.Num(2)}
			chart := papers.Chart{Name: "f", Series: []papers.Series{{Name: "s", X: []float64{0, 1}, Y: []float64{0, value}}}}
			return &papers.Report{Paper: "tiny", Options: o, Rows: []papers.Row{row}, Charts: []papers.Chart{chart}}, nil
		},
		page: func(w io.Writer, r *papers.Report, plots string) error {
			_, err := fmt.Fprintf(w, "see %s/f.svg", plots)
			return err
		},
	}
}

func runTiny(value float64, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = tiny(value).run(&tool{stdout: &out, stderr: &errs}, context.Background(), args)
	return code, out.String(), errs.String()
}

func TestPaper(t *testing.T) {
	dir := t.TempDir()
	plots, page := filepath.Join(dir, "docs", "plots"), filepath.Join(dir, "docs", "tiny.md")
	code, out, errs := runTiny(1, "-seed", "5", "-experiments", "7", "-json", "-plots", plots, "-page", page)
	if code != exitDone || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var row papers.Row
	if err := json.Unmarshal([]byte(out), &row); err != nil || row.Point != "5 7" {
		t.Errorf("%q: %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(plots, "f.svg")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != "see plots/f.svg" {
		t.Errorf("page %q: %v", text, err)
	}
}

func TestPaperFails(t *testing.T) {
	for _, c := range []struct {
		value float64
		args  string
		code  int
		want  string // in the error output
	}{
		{3, "", exitFailed, "1 of 1 figures are outside their bands"},
		{1, "-seed 13", exitFailed, "mrsim tiny: bad luck"},
		{1, "-page x", exitUsage, "Usage of mrsim tiny"},
		{1, "-experiments -1", exitUsage, "Usage of mrsim tiny"},
		{1, "more", exitUsage, "Usage of mrsim tiny"},
		{1, "-nonsense", exitUsage, "not defined: -nonsense"},
		{1, "-plots /dev/null/x", exitFailed, "mrsim tiny: plots: mkdir"},
		{1, "-h", exitDone, "Usage of mrsim tiny"},
	} {
		code, _, errs := runTiny(c.value, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q", c.args, code, errs)
		}
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string // in the output
	}{
		{"", exitUsage, "mrsim flex [-seed N]"},
		{"help", exitDone, "mrsim flex [-seed N]"},
		{"help flex", exitDone, "Usage of mrsim flex"},
		{"flex -h", exitDone, "Usage of mrsim flex"},
		{"fl", exitUsage, `unknown command "fl"`},
	} {
		var out bytes.Buffer
		code := (&tool{stdout: &out, stderr: &out}).main(context.Background(), strings.Fields(c.args))
		if code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("mrsim %s: exit code %d, %q", c.args, code, out.String())
		}
	}
}
