package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/quernmr/quern/integration/trial"
)

var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// chromium starts the browser that all tests share; empty path: there is none.
var chromium = sync.OnceValues(func() (ctx context.Context, err error) {
	path := ""
	for _, name := range browserNames {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: none of %s", errNoBrowser, strings.Join(browserNames, ", "))
	}
	profile := filepath.Join(directory, "profile")
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(trial.Deadline))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeBrowser = chromedp.NewContext(allocator)
	return ctx, chromedp.Do(ctx)
})

var (
	errNoBrowser = errors.New("no browser is installed")
	closeBrowser = context.CancelFunc(func() {})
)

// tab is a tab of the browser, with cookies of its own.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string // of the pages: http://host:port
	*seen
}

// seen is what the browser tells about a tab.
type seen struct {
	mu       sync.Mutex
	problems []string // errors, exceptions, refusals by the content security policy
	foreign  []string // requests to other hosts
	bytes    map[string]float64
	urls     map[network.RequestID]string
}

// in is the tab for a subtest.
func (p *tab) in(t testing.TB) *tab { return &tab{t, p.ctx, p.base, p.seen} }

// look is how a page is shown.
type look struct {
	name          string
	width, height int64
	dark          bool
}

var (
	wide   = look{"light", 1280, 900, false}
	dark   = look{"dark", 1280, 900, true}
	narrow = look{"narrow", 390, 844, false}
)

// newTab opens a tab at the address that mrsubmit ui has printed.
func newTab(t testing.TB, address string) *tab {
	t.Helper()
	of, err := chromium()
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(of, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, base: address[:strings.Index(address, "/?")], seen: &seen{bytes: make(map[string]float64), urls: make(map[network.RequestID]string)}}
	p.must(chromedp.Listen(ctx, p.listen))
	p.must1(chromedp.Call(ctx, network.Enable, network.EnableParams{}))
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.note(m)
		}
	}()
	p.as(wide)
	p.load(address)
	return p
}

func (p *tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) must1(_ any, err error) { p.t.Helper(); p.must(err) }

// note keeps what the console says. A connection that breaks is no problem of a page.
func (p *tab) note(m chromedp.ConsoleMessage) {
	if m.IsException() || (m.Type == "error" || m.Type == "warning") && m.Source != "network" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, m.String())
	}
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.urls[e.RequestID] = e.Request.URL
		if !strings.HasPrefix(e.Request.URL, p.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			p.foreign = append(p.foreign, e.Request.URL)
		}
	case *network.EventLoadingFinished:
		p.bytes[p.urls[e.RequestID]] += e.EncodedDataLength
	}
}

// as changes the size and the colours of the tab.
func (p *tab) as(l look) {
	p.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	p.must(chromedp.Do(p.ctx, chromedp.EmulateViewport(l.width, l.height)))
	p.must1(chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// withoutScripts switches JavaScript off for the next pages.
func (p *tab) withoutScripts() {
	p.t.Helper()
	p.must1(chromedp.Call(p.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// load opens a page by its path or whole address.
func (p *tab) load(path string) {
	p.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = p.base + path
	}
	p.must(p.within(chromedp.Navigate(path)))
}

// within runs steps with a deadline, which only ends a test that hangs.
func (p *tab) within(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, trial.Deadline)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// eval returns the value of a JavaScript expression.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until an expression is true.
func (p *tab) await(what, expression string) {
	p.t.Helper()
	last := error(nil)
	if !trial.Poll(trial.Deadline, 50*time.Millisecond, func() bool {
		var holds bool
		holds, last = chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		return last == nil && holds
	}) {
		p.t.Fatalf("waited without success for: %s (%s: %v)\n%s", what, expression, last, p.text("body"))
	}
}

// awaitText waits until the element of a selector has a text.
func (p *tab) awaitText(selector, text string) {
	p.t.Helper()
	p.await(text, fmt.Sprintf("document.querySelector(%q)?.textContent.includes(%q) ?? false", selector, text))
}

func (p *tab) text(selector string) string {
	return eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

func (p *tab) texts(selector string) []string {
	return eval[[]string](p, fmt.Sprintf("Array.from(document.querySelectorAll(%q), (e) => e.innerText.trim())", selector))
}

// setValue fills in a field of a form.
func setValue(selector, value string) chromedp.Action[chromedp.Void] {
	return chromedp.SetValue(chromedp.CSS(selector), value)
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.must(p.within(chromedp.Click(chromedp.CSS(selector))))
}

func (p *tab) press(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.must(p.within(chromedp.KeyEvent(keys, options...)))
}

// checkQuiet fails if the console has errors, or if a page has asked another host.
func (p *tab) checkQuiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problems) > 0 || len(p.foreign) > 0 {
		p.t.Errorf("the console says %q; requests to other hosts: %q", p.problems, p.foreign)
	}
	p.problems, p.foreign = nil, nil
}

// checkFits fails if the page as a whole needs horizontal scrolling.
func (p *tab) checkFits() {
	p.t.Helper()
	if over := eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		p.t.Errorf("the page is %d pixels wider than the window: %s", over, eval[string](p, `JSON.stringify(Array.from(document.querySelectorAll("body *")).filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.parentElement.closest(".scroll, svg")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120)))`))
	}
}

// shoot keeps a screenshot of the whole page, if the test run has a directory for it.
func (p *tab) shoot(name string) {
	p.t.Helper()
	if *screenshots == "" {
		return
	}
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	p.must(err)
	p.must(os.WriteFile(filepath.Join(*screenshots, name+".png"), image, 0o666))
}

// cost is what a page costs a browser that has nothing of it yet.
type cost struct {
	Paint float64 // ms to the first contentful paint
	Bytes float64 // of all that was loaded, as transferred
}

func (p *tab) cost(path string) cost {
	p.t.Helper()
	p.must1(chromedp.Call(p.ctx, network.ClearBrowserCache, cdp.Empty{}))
	p.load("about:blank")
	p.mu.Lock()
	clear(p.bytes)
	p.mu.Unlock()
	p.load(path)
	p.await("first paint", "performance.getEntriesByName('first-contentful-paint').length > 0")
	c := cost{Paint: eval[float64](p, "performance.getEntriesByName('first-contentful-paint')[0].startTime")}
	p.mu.Lock()
	defer p.mu.Unlock()
	for url, n := range p.bytes {
		if strings.HasPrefix(url, p.base) {
			c.Bytes += n
		}
	}
	return c
}

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// checkAccessible runs axe-core on the page as it is.
func (p *tab) checkAccessible(axe string) {
	p.t.Helper()
	p.must1(chromedp.Run(p.ctx, chromedp.Evaluate[int](axe+";1")))
	var found []violation
	p.must(json.Unmarshal([]byte(eval[string](p, "axe.run().then((r) => JSON.stringify(r.violations))")), &found))
	for _, v := range found {
		p.t.Errorf("%s: %s (%s), %d times", v.ID, v.Help, v.Impact, len(v.Nodes))
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			p.t.Logf("%s\n%s", n.HTML, n.FailureSummary)
		}
	}
}
