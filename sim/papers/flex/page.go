package flex

import (
	"io"

	"github.com/quernmr/quern/sim/papers"
)

// WritePage writes the page about the report.
func WritePage(w io.Writer, r *papers.Report, plots string) error { return nil }
