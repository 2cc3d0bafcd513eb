// Package golden compares results with golden files, and writes them with -update. Cases runs txtar archives, Table the
// entries of a text file, File compares one whole file. Only tests import it. The flag is defined only here, so a test
// file that imports this package is part of `make golden`.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what came out into the golden files")

// Updating reports whether golden files are written, not compared, for tests with files of another form.
func Updating() bool { return *update }

// File fails the test unless the content of the file, relative to the test's directory, is got. With -update it writes
// got.
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
