package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/pkg/cases"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type testOptions struct {
	streams command.IO
	runner  cases.Runner
	run     string
	verbose bool
	junit   string
	color   command.Color
}

func newTest(streams command.IO) *cobra.Command {
	o := &testOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Run the test cases of configs, without a cluster",
		Long: `Run test cases: files with the objects before a reconcile (a custom resource, its
inputs, live objects) and the expected result: the decision on each downstream, its
document, conditions and status, or errors. Every file below DIR that begins with

  ` + strings.TrimSpace(cases.Header) + `
  kind: ` + cases.Kind + `

is a case. Results that a case does not mention are not compared; --update fills in
a case that expects nothing yet. Cases run the same code as "corollary run": each is
one reconcile of its upstream, with an API server in memory.

The exit code is 1 if a case fails.`,
		Example: `  corollary test cases/

  # Write the actual results into the cases, then look at the change
  corollary test cases/ --update && git diff cases/

  # Some of them, printing each, with a report for CI
  corollary test cases/ --run 'scaled|paused' -v --junit report.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("no cases are named: add DIR, or a case's file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.test(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	command.BindFiles(cmd, &o.runner.Configs, "config", "c",
		"Config file or directory for cases that name none (default: the nearest "+
			cases.NearestConfig+", from the case upward); may be repeated", "yaml", "yml")
	command.BindFiles(cmd, &o.runner.CRDs, "crds", "",
		"File or directory with CustomResourceDefinitions, for cases that name none; may be repeated", "yaml", "yml", "json")
	flags.StringVar(&o.run, "run", "", "Only the cases whose name matches the regular expression")
	flags.BoolVar(&o.runner.Update, "update", false, "Write the actual results into the cases as expectations")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "Print every case, not only those that fail")
	flags.StringVar(&o.junit, "junit", "", "Write a report in JUnit's format to the file")
	o.color.Bind(cmd)
	return cmd
}

func (o *testOptions) test(ctx context.Context, args []string) error {
	paths, err := cases.Find(args)
	if err != nil {
		return err
	}
	selected, err := o.selected(paths)
	if err != nil {
		return err
	}
	verdicts := make([]*cases.Verdict, 0, len(selected))
	failed, updated := 0, 0
	for _, path := range selected {
		v := o.runner.Run(ctx, path)
		o.printVerdict(v)
		verdicts = append(verdicts, v)
		if v.Failed() {
			failed++
		} else if v.Updated {
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
		return fmt.Errorf("%d of %s failed", failed, command.Count(len(verdicts), "case"))
	}
	return nil
}

// selected keeps the cases that --run names.
func (o *testOptions) selected(paths []string) ([]string, error) {
	wanted, err := regexp.Compile(o.run)
	if err != nil {
		return nil, command.Usagef("--run is not a regular expression: %s", err)
	}
	var list []string
	for _, path := range paths {
		if wanted.MatchString(cases.Name(path)) {
			list = append(list, path)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--run %s matches none of %s, such as %s", o.run,
			command.Count(len(paths), "case"), cases.Name(paths[0]))
	}
	return list, nil
}

// printVerdict writes how a case ended; without -v only where there is something to tell.
func (o *testOptions) printVerdict(v *cases.Verdict) {
	var out bytes.Buffer
	p := o.color.Painter(o.streams)
	switch {
	case v.Failed():
		fmt.Fprintf(&out, "%s  %s\n", p.Paint(command.Red, "FAIL"), v.Name)
		out.WriteString(yamltext.Indent(details(v, p), "  "))
	case v.Updated:
		fmt.Fprintf(&out, "updated  %s\n", v.Path)
	case o.verbose:
		fmt.Fprintf(&out, "%s    %s (%.2fs)\n", p.Paint(command.Green, "ok"), v.Name, v.Took.Seconds())
	}
	_, _ = o.streams.Out.Write(out.Bytes()) // who does not read the results has the exit code
}

// details says why a case failed.
func details(v *cases.Verdict, p command.Painter) string {
	var out bytes.Buffer
	if err := errors.Join(v.Errs...); err != nil {
		fmt.Fprintln(&out, err)
	}
	for _, d := range v.Differences {
		report(&out, v.Path, d, p)
	}
	return out.String()
}

// report writes a difference as a person reads it.
func report(out *bytes.Buffer, file string, d cases.Difference, p command.Painter) {
	fmt.Fprintf(out, "%s:%d: %s (- expected, + came out)\n", file, d.Line, p.Paint(command.Bold, d.Path))
	for _, line := range d.Lines {
		line = strings.TrimSuffix(line, "\n")
		color := map[byte]string{'-': command.Red, '+': command.Green}[(line + " ")[0]]
		out.WriteString("  " + p.Paint(color, line) + "\n")
	}
}

func (o *testOptions) count(all, failed, updated int) {
	parts := []string{fmt.Sprintf("%d ok", all-failed-updated)}
	if updated > 0 {
		parts = append(parts, fmt.Sprintf("%d updated", updated))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	fmt.Fprintf(o.streams.Out, "%s: %s\n", command.Count(all, "case"), strings.Join(parts, ", "))
}
