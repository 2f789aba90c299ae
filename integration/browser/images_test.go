package browser

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/quernmr/quern/integration/trial"
)

var images = flag.String("images", "", "`directory` for the images of README.md and docs/pages.md")

// TestImages draws the images of the docs, of a cluster that has some work.
func TestImages(t *testing.T) {
	if *images == "" {
		t.Skip("make screenshots runs it")
	}
	if err := os.MkdirAll(*images, 0o777); err != nil {
		t.Fatal(err)
	}
	w := start(t, 3, 2)
	split := []string{"-D", "mapreduce.input.fileinputformat.split.maxsize=200"}
	submit := func(name, input string, settings []string, flags ...string) *trial.Run {
		return w.submit(t, name, input, slices.Concat(settings, []string{"--"}, flags, split)...)
	}
	small := w.input(t, "small", 4, 4, 6, 4, 5, 4, 9, 4)
	submit("nightly", small, nil, "-shape", "nightly", "-record-time", "10ms", "-D", "mapreduce.job.reduces=3").Succeed()
	submit("sessions", w.input(t, "large", 30, 30, 30, 30, 30, 30), []string{"-deadline", "20s"}, "-shape", "sessions", "-record-time", "300ms")
	submit("errors", w.input(t, "errors", 30, 30, 30), []string{"-deadline", "2m"}, "-shape", "errors", "-record-time", "150ms")
	shop := submit("shop", w.input(t, "shop", 12, 12, 20, 12), nil, "-shape", "clicks; orders; joined from clicks,orders; report from joined; totals from joined", "-record-time", "50ms")
	clicks := w.awaitJob(t, shop, "clicks", "succeeded")
	p := w.tab(t)
	shoot := func(name, path string, shows string) {
		p.load(path)
		p.awaitText("main", shows)
		image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
		p.must(err)
		p.must(os.WriteFile(filepath.Join(*images, name+".png"), image, 0o666))
	}
	shoot("jobs", "/jobs", "sessions")
	shoot("cluster", "/", "Slots over time")
	shoot("job", "/jobs/"+clicks, "Times of maps")
}
