package cases

import (
	"bytes"
	"context"
	"time"
)

// Runner runs cases. It is not safe for concurrent use: configs are compiled once for all.
type Runner struct {
	// Configs are files and directories with the configs for cases that name none; if there are none, the config is the nearest
	// file called NearestConfig, from the folder of the case upward.
	Configs []string
	// CRDs are files and directories with the definitions for cases that name none.
	CRDs []string
	// Update writes the result into the expectations.
	Update bool

	loaded map[string]*loaded
}

// Verdict is the result of one case.
type Verdict struct {
	// Path is the path of the file, Name the name of the case.
	Path, Name string
	Took       time.Duration
	// Updated is true if the file was written.
	Updated bool
	// Errs say why the case could not be run; Differences what differs from the expectation.
	Errs        []error
	Differences []Difference
}

// Failed reports whether the case could not be run or did not meet its expectation.
func (v *Verdict) Failed() bool { return len(v.Errs) > 0 || len(v.Differences) > 0 }

// Run runs the case in a file. With Update, it fails only if the result cannot be written.
func (r *Runner) Run(ctx context.Context, path string) *Verdict {
	begin := time.Now()
	v := &Verdict{Path: path, Name: Name(path)}
	c, errs := read(path)
	if v.Errs = errs; len(errs) == 0 {
		r.run(ctx, c, v)
	}
	v.Took = time.Since(begin)
	return v
}

func (r *Runner) run(ctx context.Context, c *testCase, v *Verdict) {
	cc, err := r.configs(c)
	if err != nil {
		v.Errs = []error{err}
		return
	}
	out, err := c.evaluate(ctx, cc)
	if err != nil {
		v.Errs = []error{err}
		return
	}
	if v.Errs = c.unknownExpectations(out); len(v.Errs) > 0 {
		return
	}
	got, w := c.restrictToExpected(out), treeWriter{downstreams: out.downstreams, words: out.words}
	if r.Update && !c.hasUnexpectedErrors(got) {
		v.Updated, err = c.update(got, w)
	} else {
		v.Differences, err = c.compare(got, w)
	}
	if err != nil {
		v.Errs = []error{err}
	}
}

// compare returns what differs from the expectation. An empty expectation always fails; if there are errors, they are the
// difference.
func (c *testCase) compare(got map[string]any, w treeWriter) ([]Difference, error) {
	if len(c.expect) == 0 && !c.hasUnexpectedErrors(got) {
		return nil, c.errorAt("expect", "expect is empty: write an expectation, or use --update to write the result")
	}
	return c.differences(got, w)
}

// hasUnexpectedErrors reports whether the result has errors that the case does not expect. They are never written: a temporary
// error in a config would replace every expectation.
func (c *testCase) hasUnexpectedErrors(got map[string]any) bool {
	_, asked := c.expect["errors"]
	_, wrong := got["errors"]
	return wrong && !asked
}

func (c *testCase) update(got map[string]any, w treeWriter) (bool, error) {
	if same(c.expect, got) {
		return false, nil
	}
	text, err := c.updated(got, w)
	if err == nil && !bytes.Equal(text, c.text) {
		err = replaceFile(c.path, text)
	}
	return err == nil, err
}
