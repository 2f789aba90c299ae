package pages

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
)

// colours is the number of colours of jobs in the style.
const colours = 12

// functions are those of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"size":   client.Size,
		"span":   span,
		"time":   wallTime,
		"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"colour": colour,
		"log":    logPath,
		"part":   part,
		"ended":  ended,
		"sub":    func(a, b int) int { return a - b },
	}
}

// wallTime formats a time in UTC, to the second.
func wallTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// colour is the class of a job's colour. All pages and job trackers give a job the same one.
func colour(job string) string {
	sum := fnv.New32a()
	sum.Write([]byte(job)) // never fails
	return fmt.Sprintf("c%d", sum.Sum32()%colours)
}

// logPath is the page of an attempt's log.
func logPath(attempt, stream string) string {
	job := "job"
	if parts := strings.Split(attempt, "_"); len(parts) > 2 { // attempt_START_JOB_…
		job = "job_" + parts[1] + "_" + parts[2]
	}
	return "/jobs/" + url.PathEscape(job) + "/attempts/" + url.PathEscape(attempt) + "/" + stream
}

// part is done of total in thousandths.
func part(done, total int64) int64 {
	if total <= 0 {
		return 0
	}
	return int64(1000 * float64(done) / float64(total))
}
