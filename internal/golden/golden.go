// Package golden compares what tests get with what files say they should get,
// and writes those files anew where -update is given. Cases runs txtar archives,
// text in and text out; File compares one whole file. Only tests import it. It
// knows nothing of what is compared: what a section is for is the test's affair.
//
// The flag is here alone, so a test file that imports this package takes part in
// `make golden`.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what came out into the golden files")

// Updating reports whether golden files are to be written rather than compared, for
// tests that have files of another form.
func Updating() bool { return *update }

// File fails the test unless the file at the path, relative to the test's
// directory, is got to the byte. With -update it writes got there instead.
func File(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (- file, + now); make golden writes it anew:\n%s", path, diff)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
