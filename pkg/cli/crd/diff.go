package crd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/described"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// inCluster means the definitions that the API server has.
const inCluster = "cluster"

// exitBreaking is the exit code of a diff with a breaking change; exitChanges that of one that needs a conversion.
const exitBreaking = 3

type diffOptions struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
	output     command.Output
	rollback   bool
}

func newDiff(streams command.IO) *cobra.Command {
	o := &diffOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what a change of CustomResourceDefinitions breaks",
		Long: `Compare CustomResourceDefinitions before and after a change, and print the effect of
each difference and what to do. OLD and NEW are files or directories. The word cluster
stands for the same definitions in the API server, including the versions in which
objects are stored.

  compatible  every valid object stays valid and keeps all fields
  conversion  values are lost or mean something else, unless the change is made in a
              new version with a conversion
  breaking    objects or clients that work now are refused, stored values are lost, or API
              servers refuse the new definition

With -c, removing a version or field that a config reads is breaking, too.

A change counts as compatible only if nothing is lost. If that cannot be decided, as
with two patterns, it counts as breaking.

The exit code is 0 if all is compatible, 1 on an error, 2 if something needs a
conversion, and 3 if something breaks.`,
		Example: `  corollary crd diff old.yaml new.yaml

  # In CI: what a branch would do to the cluster, and to the operators
  corollary crd diff cluster crds/ -c configs/

  # A field that is added in place is lost if the old definition comes back
  corollary crd diff old.yaml new.yaml --rollback`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 2:
				return command.Usagef("name two files or directories with CustomResourceDefinitions, the old one first; " +
					"cluster is the API server")
			case args[0] == inCluster && args[1] == inCluster:
				return command.Usagef("OLD and NEW are the same: name a file or directory for one of them")
			}
			return nil
		},
		RunE: command.RunUntilSignal(o.run),
	}
	o.configs.Bind(cmd)
	o.output.Bind(cmd, "Output format: text, or json (documented in docs/cli.md)", command.Text, command.JSON)
	cmd.Flags().BoolVar(
		&o.rollback,
		"rollback",
		false,
		"Exit with 2 also if values get lost, or objects are refused, once OLD is applied again",
	)
	o.connection.Bind(cmd, "")
	return cmd
}

func (o *diffOptions) run(ctx context.Context, args []string) error {
	before, after, err := o.definitions(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	changes, err := crddiff.Diff(before, after)
	if err != nil {
		return err
	}
	affected, err := o.affected(before, after)
	if err != nil {
		return err
	}
	changes = append(changes, affected...)
	worst := crddiff.Worst(changes, o.rollback)
	if err := o.print(worst, changes); err != nil {
		return err
	}
	switch worst {
	case crddiff.Breaking:
		return &command.ExitError{Code: exitBreaking}
	case crddiff.Conversion:
		return &command.ExitError{Code: command.ExitChanges}
	}
	return nil
}

// definitions reads both sides. Of the cluster, only those count that are in the files.
func (o *diffOptions) definitions(
	ctx context.Context,
	from, to string,
) (before, after []*apiextensionsv1.CustomResourceDefinition, err error) {
	sides := map[string][]*apiextensionsv1.CustomResourceDefinition{}
	var names []string
	for _, side := range []string{from, to} {
		if side == inCluster {
			continue
		}
		if sides[side], err = kinds.CRDs(side); err != nil {
			return nil, nil, err
		}
		if len(sides[side]) == 0 {
			return nil, nil, fmt.Errorf("%s contains no CustomResourceDefinition", side)
		}
		for _, d := range sides[side] {
			names = append(names, d.Name)
		}
	}
	if from == inCluster || to == inCluster {
		if sides[inCluster], err = o.fromCluster(ctx, names); err != nil {
			return nil, nil, err
		}
	}
	if from == inCluster {
		leaveConversion(sides[from], sides[to])
	}
	return sides[from], sides[to], nil
}

// leaveConversion gives files that say nothing of a conversion that of the cluster: applying them leaves it as it is.
func leaveConversion(cluster, files []*apiextensionsv1.CustomResourceDefinition) {
	for _, d := range files {
		i := slices.IndexFunc(cluster, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c.Name == d.Name })
		if i >= 0 && d.Spec.Conversion == nil {
			d.Spec.Conversion = cluster[i].Spec.Conversion
		}
	}
}

func (o *diffOptions) fromCluster(
	ctx context.Context, names []string,
) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	client, err := o.connection.Dynamic()
	if err != nil {
		return nil, err
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		found, err := kinds.ReadDefinition(ctx, client, name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		}
		list = append(list, found)
	}
	return list, nil
}

// affected lists what configs read that goes away.
func (o *diffOptions) affected(before, after []*apiextensionsv1.CustomResourceDefinition) ([]crddiff.Change, error) {
	if len(o.configs.Files) == 0 {
		return nil, nil
	}
	files, err := o.configs.Valid(o.streams)
	if err != nil {
		return nil, err
	}
	return described.Affected(files, before, after)
}

func (o *diffOptions) print(worst crddiff.Level, changes []crddiff.Change) error {
	if changes == nil {
		changes = []crddiff.Change{}
	}
	value := map[string]any{"level": worst, "changes": changes}
	return o.output.Print(o.streams.Out, value, func(w io.Writer) error { return printChanges(w, changes) })
}

// printChanges lists changes, the worst first, and counts them.
func printChanges(w io.Writer, changes []crddiff.Change) error {
	slices.SortStableFunc(changes, func(a, b crddiff.Change) int { return cmp.Compare(b.Level, a.Level) })
	counts := map[crddiff.Level]int{}
	for _, c := range changes {
		counts[c.Level]++
		fmt.Fprintf(w, "%-10s  %s\n", c.Level, c)
		if c.Rollback != "" {
			fmt.Fprintf(w, "%-10s  rollback: %s\n", "", c.Rollback)
		}
		if c.Fix != "" {
			fmt.Fprintf(w, "%-10s  fix: %s\n", "", c.Fix)
		}
	}
	var texts []string
	for _, l := range []crddiff.Level{crddiff.Breaking, crddiff.Conversion, crddiff.Compatible} {
		texts = append(texts, fmt.Sprintf("%d %s", counts[l], l))
	}
	_, err := fmt.Fprintln(w, strings.Join(texts, ", "))
	return err
}
