package cases

import (
	"bytes"
	"context"
	"time"
)

// Runner runs cases. It is not safe for concurrent use: configs are compiled once for all.
type Runner struct {
	// Configs are files and directories with the configs of cases that name none; where there are none either, a case is
	// about the nearest file called NearestConfig, from its folder upward.
	Configs []string
	// CRDs are files and directories with the definitions for cases that name none.
	CRDs []string
	// Update writes what comes out into the expectations.
	Update bool

	loaded map[string]*loaded
}

// Verdict is how one case ended.
type Verdict struct {
	// Path is that of the file, Name what the case is called.
	Path, Name string
	Took       time.Duration
	// Updated tells that the file was written.
	Updated bool
	// Errs say why the case could not be run; Differences what did not come out.
	Errs        []error
	Differences []Difference
}

// Failed tells that the case could not be run or did not come out as expected.
func (v *Verdict) Failed() bool { return len(v.Errs) > 0 || len(v.Differences) > 0 }

// Run runs the case of a file. With Update it fails only where there is nothing to write.
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
	got, w := c.narrowed(out), treeWriter{downstreams: out.downstreams, words: out.words}
	if r.Update && !c.surprised(got) {
		v.Updated, err = c.update(got, w)
	} else {
		v.Differences, err = c.compare(got, w)
	}
	if err != nil {
		v.Errs = []error{err}
	}
}

// compare tells what of an expectation did not come out. One that says nothing is never met, but of errors that come out
// it need not be told.
func (c *testCase) compare(got map[string]any, w treeWriter) ([]Difference, error) {
	if len(c.expect) == 0 && !c.surprised(got) {
		return nil, c.errorAt("expect", "the case expects nothing yet: --update writes what comes out, or name a part of it")
	}
	return c.differences(got, w)
}

// surprised tells that errors came out where the case says nothing of any. They are never written: a config that is broken
// for a moment would take every expectation away.
func (c *testCase) surprised(got map[string]any) bool {
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
