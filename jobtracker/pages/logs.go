package pages

import (
	"fmt"
	"net/http"
	"slices"
)

// logPage shows a log of an attempt. Its text comes from mrsubmit, which reads it from the task tracker: a job
// tracker has neither the logs nor the right to read them.
type logPage struct {
	jobHead
	Attempt, Stream, Other string
	Raw                    string // path of the text
}

// streams are the logs of an attempt.
var streams = []string{"stderr", "stdout"}

func (h *handler) log(r *http.Request) (any, error) {
	attempt, stream := r.PathValue("attempt"), r.PathValue("stream")
	i := slices.Index(streams, stream)
	if i < 0 {
		return nil, &problem{Status: http.StatusNotFound, Text: fmt.Sprintf("an attempt has the logs stdout and stderr, not %q", stream)}
	}
	head, err := h.head(r, "attempts")
	if err != nil {
		return nil, err
	}
	if jobOf(attempt) != head.ID {
		return nil, &problem{Status: http.StatusNotFound, Text: fmt.Sprintf("%s has no attempt %q", head.ID, attempt)}
	}
	return &logPage{jobHead: *head, Attempt: attempt, Stream: stream, Other: streams[1-i], Raw: logPath(attempt, stream) + "/text"}, nil
}

// logElsewhere answers requests for the text of a log.
func logElsewhere(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	http.Error(w, fmt.Sprintf("Task trackers have the logs. Open these pages with mrsubmit ui, or run:\n\n    mrsubmit logs %s %s\n", r.PathValue("id"), r.PathValue("attempt")), http.StatusNotFound)
}
