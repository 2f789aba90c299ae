package docs

import (
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the pages")

func TestPages(t *testing.T) {
	for file, want := range map[string]string{"../../docs/properties.md": Properties()} {
		if *rewrite {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v): go test ./internal/docs -rewrite", file, err)
		}
	}
}
