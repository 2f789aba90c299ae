package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
)

// functions are those of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"size":    client.Size,
		"span":    span,
		"time":    wallTime,
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clock":   clock,
		"colour":  colour,
		"log":     logPath,
		"short":   shortID,
		"part":    part[int],
		"bytes":   part[int64],
		"pct":     percentage,
		"count":   count,
		"ended":   ended,
		"sub":     func(a, b int) int { return a - b },
		"percent": func(f float64) float64 { return 100 * f },
		"dict":    dict,
	}
}

// dict makes the map that a template passes to another one, from names, each before its value.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict has %d arguments: want names and values", len(pairs))
	}
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: the name %v is no string", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// wallTime formats a time in UTC, to the second.
func wallTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// clock formats the time of day in UTC.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// span formats milliseconds.
func span(ms int64) string {
	d := millis(ms)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// count formats an int or int64 of a template.
func count(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return grouped(n), nil
	case int64:
		return grouped(n), nil
	}
	return "", fmt.Errorf("count: %T is no number", n)
}

// grouped formats a number with a narrow space between thousands.
func grouped[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

// percentage formats a place or width, from 0 to 1, for SVG.
func percentage(f float64) string {
	return strconv.FormatFloat(100*f, 'f', 2, 64) + "%"
}

// part is done of total, from 0 to 1.
func part[N int | int64](done, total N) float64 {
	if total <= 0 {
		return 0
	}
	return min(1, float64(done)/float64(total))
}

// colours is the number of colours of jobs in the style, and hatches the number of their patterns.
const colours, hatches = 12, 3

// colour is the class of a job's colour and pattern. All pages and job trackers give a job the same one. It
// follows from the job's number, so jobs that run at the same time differ, up to 36 of them.
func colour(job string) string {
	n, err := strconv.Atoi(job[strings.LastIndexByte(job, '_')+1:])
	if err != nil || n < 0 {
		n = 0
	}
	class := fmt.Sprintf("c%d", n%colours)
	if h := n / colours % hatches; h > 0 {
		class += fmt.Sprintf(" h%d", h)
	}
	return class
}

// fill and hatch are the class of a job's colour without its pattern, and the pattern: "h1", or empty for none.
func fill(job string) string {
	class, _, _ := strings.Cut(colour(job), " ")
	return class
}

func hatch(job string) string {
	_, class, _ := strings.Cut(colour(job), " ")
	return class
}

// logPath is the page of an attempt's log.
func logPath(attempt, stream string) string {
	return "/jobs/" + url.PathEscape(jobOf(attempt)) + "/attempts/" + url.PathEscape(attempt) + "/" + stream
}

// jobOf is the job in the id of an attempt: attempt_START_JOB_m_000001_0.
func jobOf(attempt string) string {
	if parts := strings.Split(attempt, "_"); len(parts) > 2 {
		return "job_" + parts[1] + "_" + parts[2]
	}
	return "job"
}

// shortID shortens the id of an attempt to what differs within a job: m_000001_0.
func shortID(attempt string) string {
	if parts := strings.SplitN(attempt, "_", 4); len(parts) == 4 {
		return parts[3]
	}
	return attempt
}
