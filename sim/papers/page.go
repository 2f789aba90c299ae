package papers

import (
	"fmt"
	"io"
	"maps"
	"text/template"
)

// WritePage fills in the template of a paper's page: tables by functions, and values common to
// all pages plus the page's own.
func (r *Report) WritePage(w io.Writer, text, plots string, tables template.FuncMap, own map[string]any) error {
	t, err := template.New("page").Funcs(tables).Parse(text)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	values := map[string]any{"Plots": plots, "Seed": r.Options.Seed, "Experiments": r.Options.Experiments}
	maps.Copy(values, own)
	return t.Execute(w, values)
}
