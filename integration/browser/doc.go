// Package browser has tests of the pages in a real browser: a headless Chromium opens the pages of a
// cluster of real processes through mrsubmit ui. The package has no other code.
//
// It is a module of its own, so that neither the module of Quern nor its users download what drives a
// browser. So run its tests here:
//
//	cd integration/browser && go test -short .     the three main pages, as the gate does
//	cd integration/browser && go test .            all, as make compat does
//	make screenshots                               draws the images of README.md and docs/pages.md anew
//
// The tests need a program chromium, chromium-browser, google-chrome or chrome, and skip by name without
// it. The check of accessibility is axe-core's, which npm downloads once into the cache; only that check is
// skipped without npm. With -screenshots DIR the tests keep a screenshot of each page, light, dark and narrow.
//
// Each test that changes the cluster has a cluster of its own. The others share one, see world.
package browser
