package golden

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestUpper returns a typical test. TestOutcomes runs it again, in another process, on cases that fail.
func TestUpper(t *testing.T) {
	Cases(t, "testdata/*.txtar", func(t *testing.T, c *Case) {
		t.Chdir(t.TempDir()) // a case is written to the directory from which it was read
		switch in := c.Section("in"); in {
		case "ignored\n":
		case "fatal\n":
			c.Want(t, "upper", "half a result\n")
			t.Fatal("no more of it")
		case "":
			c.Want(t, "empty", "")
			c.WantNone(t, "upper")
		default:
			c.Want(t, "upper", strings.ToUpper(in))
			c.WantNone(t, "empty")
		}
	})
}

// TestWhole returns the same for a whole file.
func TestWhole(t *testing.T) { File(t, "testdata/whole.txt", []byte("as it is\n")) }

// TestDoubled returns the same for a table.
func TestDoubled(t *testing.T) {
	Table(t, "testdata/doubled.txt", func(_ *testing.T, input string) string { return strings.Trim(input+"\n"+input, "\n") })
}

//nolint:dupword // Lines of tables are doubled on purpose.
func TestOutcomes(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		file    string
		text    string
		run     string
		fails   string // part of the output; "" if the test passes
		updated string // the file after -update
		still   bool   // it fails with -update, too
	}{
		{"what is wanted came out", "a.txtar", "Why.\n-- in --\na\n-- upper --\nA\n", "TestUpper", "", "Why.\n-- in --\na\n-- upper --\nA\n",
			false},
		{"something else came out", "a.txtar", "Why.\n-- in --\na\n-- upper --\nB\n", "TestUpper", "upper differs",
			"Why.\n-- in --\na\n-- upper --\nA\n", false},
		{"the sections after it stay", "a.txtar", "Why.\n-- upper --\n-- in --\na\n", "TestUpper", "upper differs",
			"Why.\n-- upper --\nA\n-- in --\na\n", false},
		{"a new case", "a.txtar", "Why.\n-- in --\na\n", "TestUpper", "no section upper", "Why.\n-- in --\na\n-- upper --\nA\n", false},
		{"the outcome has another section", "a.txtar", "Why.\n-- in --\n-- upper --\nA\n", "TestUpper", "has a section upper",
			"Why.\n-- in --\n-- empty --\n", false},
		{"an empty section is not a missing one", "a.txtar", "Why.\n-- in --\n", "TestUpper", "no section empty", "Why.\n-- in --\n-- empty --\n",
			false},
		{"nobody knows why", "a.txtar", "-- in --\na\n-- upper --\nA\n", "TestUpper", "no reason", "-- in --\na\n-- upper --\nA\n", true},
		{"nothing is compared", "a.txtar", "Why.\n-- in --\nignored\n", "TestUpper", "checks nothing", "Why.\n-- in --\nignored\n", true},
		{"a case that breaks off is not written", "a.txtar", "Why.\n-- in --\nfatal\n-- upper --\nA\n", "TestUpper", "no more of it",
			"Why.\n-- in --\nfatal\n-- upper --\nA\n", true},
		{"no case matches", "a.text", "Why.\n", "TestUpper", "no cases match testdata/*.txtar", "Why.\n", true},
		{"the file is as it is", "whole.txt", "as it is\n", "TestWhole", "", "as it is\n", false},
		{"a result of a table is as it is", "doubled.txt", "# x\na\n    a\n    a\n", "TestDoubled", "", "# x\na\n    a\n    a\n", false},
		{"a result of a table differs", "doubled.txt", "# x\na\n    a\n\n# y\nb\n", "TestDoubled", "the result differs",
			"# x\na\n    a\n    a\n\n# y\nb\n    b\n    b\n", false},
		{"an entry of a table gives no reason", "doubled.txt", "a\n    a\n", "TestDoubled", "no reason", "a\n    a\n", true},
		{"a result of a table is empty", "doubled.txt", "# x\n", "TestDoubled", "the result is empty", "# x\n", true},
		{"the file differs", "whole.txt", "as it was\n", "TestWhole", "whole.txt differs", "as it is\n", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "testdata", tc.file)
			must.Do(t, os.Mkdir(filepath.Dir(path), 0o755))
			write(t, path, []byte(tc.text))
			ok, out := runAgain(t, dir, tc.run)
			if ok != (tc.fails == "") || !strings.Contains(out, tc.fails) {
				t.Errorf("passes: %v, want it to say %q:\n%s", ok, tc.fails, out)
			}
			expect(t, path, tc.text)
			if ok, out := runAgain(t, dir, tc.run, "-update"); ok == tc.still {
				t.Errorf("with -update it passes: %v\n%s", ok, out)
			}
			expect(t, path, tc.updated)
			if ok, out := runAgain(t, dir, tc.run); ok == tc.still {
				t.Errorf("after -update it passes: %v\n%s", ok, out)
			}
		})
	}
}

// runAgain runs one test of this package in the directory and returns whether it passes, and its output.
func runAgain(t *testing.T, dir, name string, flags ...string) (bool, string) {
	t.Helper()
	self := must.Get(os.Executable()).In(t)
	command := exec.CommandContext(t.Context(), self, append([]string{"-test.run", "^" + name + "$"}, flags...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // otherwise the race detector waits a second each time
	out, err := command.CombinedOutput()
	return err == nil, string(out)
}

func expect(t *testing.T, path, want string) {
	t.Helper()
	got := must.Get(os.ReadFile(path)).In(t)
	if string(got) != want {
		t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
}
