package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type testOptions struct {
	streams IO
	configs caseConfigs
	run     string
	update  bool
	verbose bool
	junit   string
	color   colorFlag
}

func newTest(streams IO) *cobra.Command {
	o := &testOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Run the test cases of configs, without a cluster",
		Long: `Run cases: files that say what goes in (a custom resource, its inputs, what stands
in the cluster) and what should come out: the decision on each downstream, its
document, conditions and status, or errors. Every file below DIR that begins with

  ` + strings.TrimSpace(caseHeader) + `
  kind: ` + caseKind + `

is one. What a case does not expect is not compared; one that expects nothing yet
is filled in by --update. The code is that of run, carried out in memory.

The exit code is 1 where a case fails.`,
		Example: `  corollary test cases/

  # Write what comes out into the cases, then look at the change
  corollary test cases/ --update && git diff cases/

  # Some of them, each told, and a report for a build server
  corollary test cases/ --run 'scaled|paused' -v --junit report.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no cases are named: add DIR, or a case's file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.test(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.configs.configs, "config", "c", nil, "Config file or directory for cases that name none (default: the nearest "+nearestConfig+", from the case upward); may be repeated")
	completeFiles(cmd, "config", "yaml", "yml")
	flags.StringArrayVar(&o.configs.crds, "crds", nil, "File or directory with CustomResourceDefinitions, for cases that name none; may be repeated")
	completeFiles(cmd, "crds", "yaml", "yml", "json")
	flags.StringVar(&o.run, "run", "", "Only the cases whose name matches the regular expression")
	flags.BoolVar(&o.update, "update", false, "Write what comes out into the expectations of the cases")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "Tell of every case, not only of those that fail")
	flags.StringVar(&o.junit, "junit", "", "Write a report in JUnit's format to the file")
	o.color.bind(cmd)
	return cmd
}

// caseVerdict is how one case ended.
type caseVerdict struct {
	c       *testCase
	took    time.Duration
	updated bool
	// errs say why the case could not be run; differences what did not come out.
	errs        []error
	differences []caseDifference
}

func (v *caseVerdict) failed() bool { return len(v.errs) > 0 || len(v.differences) > 0 }

func (o *testOptions) test(ctx context.Context, args []string) error {
	paths, err := findCases(args)
	if err != nil {
		return err
	}
	selected, err := o.selected(paths)
	if err != nil {
		return err
	}
	verdicts := make([]*caseVerdict, 0, len(selected))
	failed, updated := 0, 0
	for _, path := range selected {
		v := o.one(ctx, path)
		o.tell(v)
		verdicts = append(verdicts, v)
		if v.failed() {
			failed++
		} else if v.updated {
			updated++
		}
	}
	o.count(len(verdicts), failed, updated)
	if o.junit != "" {
		if err := writeJUnit(o.junit, verdicts); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, count(len(verdicts), "case"))
	}
	return nil
}

// selected keeps the cases that --run names.
func (o *testOptions) selected(paths []string) ([]string, error) {
	wanted, err := regexp.Compile(o.run)
	if err != nil {
		return nil, usagef("--run is no regular expression: %s", err)
	}
	var list []string
	for _, path := range paths {
		if wanted.MatchString(caseName(path)) {
			list = append(list, path)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--run %s matches none of %s, such as %s", o.run, count(len(paths), "case"), caseName(paths[0]))
	}
	return list, nil
}

// one runs a case. With --update it fails only where there is nothing to write.
func (o *testOptions) one(ctx context.Context, path string) *caseVerdict {
	begin := time.Now()
	v := &caseVerdict{c: &testCase{path: path, name: caseName(path)}}
	defer func() { v.took = time.Since(begin) }()
	c, errs := readCase(path)
	if c != nil {
		v.c, c.name = c, caseName(path)
	}
	if v.errs = errs; len(errs) > 0 {
		return v
	}
	out, err := c.evaluate(ctx, &o.configs)
	if err != nil {
		v.errs = []error{err}
		return v
	}
	if v.errs = c.unclearAsks(out); len(v.errs) > 0 {
		return v
	}
	got, w := c.narrowed(out), treeWriter{downstreams: out.downstreams}
	if o.update && !c.surprised(got) {
		v.updated, err = c.update(got, w)
	} else {
		v.differences, err = c.compare(got, w)
	}
	if err != nil {
		v.errs = []error{err}
	}
	return v
}

// compare tells what of an expectation did not come out. One that says nothing is never met, but of errors that come out
// it need not be told.
func (c *testCase) compare(got map[string]any, w treeWriter) ([]caseDifference, error) {
	if len(c.expect) == 0 && !c.surprised(got) {
		return nil, c.mistake("expect", "the case expects nothing yet: --update writes what comes out, or name a part of it")
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

// tell writes how a case ended; without -v only where there is something to tell.
func (o *testOptions) tell(v *caseVerdict) {
	var out bytes.Buffer
	p := o.color.painter(o.streams)
	switch {
	case v.failed():
		fmt.Fprintf(&out, "%s  %s\n", p.paint(red, "FAIL"), v.c.name)
		out.WriteString(indented(v.details(p), "  "))
	case v.updated:
		fmt.Fprintf(&out, "updated  %s\n", v.c.path)
	case o.verbose:
		fmt.Fprintf(&out, "%s    %s (%.2fs)\n", p.paint(green, "ok"), v.c.name, v.took.Seconds())
	}
	_, _ = o.streams.Out.Write(out.Bytes()) // who does not read the results has the exit code
}

// details says why a case failed.
func (v *caseVerdict) details(p painter) string {
	var out bytes.Buffer
	if err := errors.Join(v.errs...); err != nil {
		fmt.Fprintln(&out, err)
	}
	for _, d := range v.differences {
		d.report(&out, v.c.path, p)
	}
	return out.String()
}

func (o *testOptions) count(all, failed, updated int) {
	parts := []string{fmt.Sprintf("%d ok", all-failed-updated)}
	if updated > 0 {
		parts = append(parts, fmt.Sprintf("%d updated", updated))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	fmt.Fprintf(o.streams.Out, "%s: %s\n", count(all, "case"), strings.Join(parts, ", "))
}
