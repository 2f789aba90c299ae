package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/integration/cache"
)

// axe-core checks accessibility. It has a license of its own (MPL-2.0), so the repository has no copy.
const (
	axeVersion   = "axe-core@4.14.1"
	axeIntegrity = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axeSource returns the script of axe-core, which npm downloads once. Without it, the test is skipped.
func axeSource(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("axe-core is not checked: npm is not installed")
	}
	dir, err := cache.Dir("axe-core", axeVersion, func(dir string) error {
		// npm compares the package with the checksum in the lock file.
		lock := fmt.Sprintf(`{"name":"axe","lockfileVersion":3,"packages":{"":{"dependencies":{"axe-core":"4.14.1"}},"node_modules/axe-core":{"version":"4.14.1","integrity":%q}}}`, axeIntegrity)
		if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte(lock), 0o666); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"axe","dependencies":{"axe-core":"4.14.1"}}`), 0o666); err != nil {
			return err
		}
		cmd := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Skipf("axe-core is not checked: it cannot be downloaded: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
