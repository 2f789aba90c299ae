package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// TaskRanges are ranges of numbers of tasks, as Hadoop's properties have them: "0-2", "1,4-", "-3".
type TaskRanges []TaskRange

// TaskRange is a range with its ends.
type TaskRange struct{ From, To int }

// ParseTaskRanges parses ranges; an empty text has none.
func ParseTaskRanges(text string) (ranges TaskRanges, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		r := TaskRange{To: math.MaxInt}
		if from != "" {
			r.From, err = strconv.Atoi(from)
		} else if to == "" {
			err = strconv.ErrSyntax
		}
		switch {
		case err != nil:
		case !isRange:
			r.To = r.From
		case to != "":
			r.To, err = strconv.Atoi(to)
		}
		if err != nil || r.From < 0 || r.To < r.From {
			return nil, fmt.Errorf("%q is no range of task numbers, such as 0-2 or 1,4-", text)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// Has reports whether a number is in one of the ranges.
func (r TaskRanges) Has(n int) bool {
	for _, x := range r {
		if x.From <= n && n <= x.To {
			return true
		}
	}
	return false
}
