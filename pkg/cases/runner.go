package cases

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Runner runs cases. It is not safe for concurrent use: configs are compiled once for all.
type Runner struct {
	// Configs are files and directories with the configs for cases that name none; if there are none, the config is the
	// nearest file called NearestConfig, from the folder of the case upward.
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
	c, errs := readFile(path)
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
		v.Differences, err = c.compared(got, w)
	}
	if err != nil {
		v.Errs = []error{err}
	}
}

// compared returns what differs from the expectation. An empty expectation always fails; if there are errors, they are
// the difference.
func (c *testCase) compared(got map[string]any, w treeWriter) ([]Difference, error) {
	if len(c.expect) == 0 && !c.hasUnexpectedErrors(got) {
		return nil, c.errorAt("expect", "expect is empty: write an expectation, or use --update to write the result")
	}
	return c.differences(got, w)
}

// hasUnexpectedErrors reports whether the result has errors that the case does not expect. They are never written: a
// temporary error in a config would replace every expectation.
func (c *testCase) hasUnexpectedErrors(got map[string]any) bool {
	_, asked := c.expect["errors"]
	_, wrong := got["errors"]
	return wrong && !asked
}

func (c *testCase) update(got map[string]any, w treeWriter) (bool, error) {
	if equal(c.expect, got) {
		return false, nil
	}
	text, err := c.updated(got, w)
	if err == nil && !bytes.Equal(text, c.text) {
		err = replaceFile(c.path, text)
	}
	return err == nil, err
}

// configs loads and compiles the configs of a case, once for all cases with the same ones. It returns an error for a
// mistake in the case, not in the configs.
func (r *Runner) configs(c *testCase) (*loaded, error) {
	files, err := r.configFiles(c)
	if err != nil {
		return nil, err
	}
	crds := r.CRDs
	if len(c.crds) > 0 {
		crds = inFolder(c.dir(), c.crds)
	}
	key := strings.Join(files, "\x00") + "\x01" + strings.Join(crds, "\x00")
	if made, ok := r.loaded[key]; ok {
		return made, nil
	}
	source, err := readKinds(crds)
	if err != nil {
		return nil, c.errorAt("crds", "%s", err)
	}
	made, err := compileConfigs(files, source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	if r.loaded == nil {
		r.loaded = map[string]*loaded{}
	}
	r.loaded[key] = made
	return made, nil
}

func (r *Runner) configFiles(c *testCase) ([]string, error) {
	switch {
	case c.config != "":
		files := inFolder(c.dir(), []string{c.config})
		if _, err := os.Stat(files[0]); err != nil {
			return nil, c.errorAt("config", "reading the config: %s", err)
		}
		return files, nil
	case len(r.Configs) > 0:
		return r.Configs, nil
	}
	dir, err := filepath.Abs(c.dir())
	if err != nil {
		return nil, err
	}
	up, found := FindNearest(dir)
	if !found {
		return nil, fmt.Errorf("%s: no config: set config: ../FILE, use -c, or put %s into this folder or one above",
			c.path, NearestConfig)
	}
	return inFolder(filepath.Join(c.dir(), up), []string{NearestConfig}), nil
}
