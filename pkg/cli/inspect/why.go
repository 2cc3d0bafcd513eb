package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/explain"
)

type whyOptions struct {
	surveyFlags
	drawing command.Drawing
	color   command.Color
	running runningFlags
}

func newWhy(streams command.IO) *cobra.Command {
	o := &whyOptions{surveyFlags: surveyFlags{streams: streams}}
	cmd := &cobra.Command{
		Use:   "why -c CONFIG KIND NAME",
		Short: "Explain the state of one object, up and down its chain",
		Long: `Explain an upstream or a downstream: what it is made from and what is made from it,
across all the given configs. For each downstream: what is decided and why, which
rules fired, the result of "when", why it is not ready and which rules of the config
say so, who last wrote the fields that have drifted, and what the next write would
change. For an upstream that the watch does not select: the label or namespace that
is the reason. For an input: who reads it. For any other object: whether it blocks a
downstream. Nothing is written.

KIND is a kind of the configs by any of its names: deployment, deploy,
deployments.apps, deployment/NAME. A row of a database is "row KEY", with the key as
it is in the database, or as "corollary get" shows it.`,
		Example: `  corollary why -c app.yaml appoperator web -n team-a

  # Of any object in the cluster
  corollary why -c configs/ configmap/settings -n team-a

  # A picture of an object with all that it follows from and that follows from it
  corollary why -c configs/ appoperator web -o svg

  # For a script: the states of all downstreams
  corollary why -c app.yaml appoperator web -o json | jq '.upstreams[].downstreams[].state'`,
		Args: command.KindAndName,
		RunE: command.RunUntilSignal(o.run),
	}
	o.bind(cmd, "Namespace of the object; by default the kubeconfig's")
	o.drawing.Bind(cmd, "Output format: text, json (documented in docs/cli.md), or a picture of the chain: svg, html,"+
		" mermaid, dot", command.Text, command.JSON)
	o.color.Bind(cmd)
	o.running.bind(cmd)
	return cmd
}

func (o *whyOptions) run(ctx context.Context, args []string) error {
	kind, name, err := command.SplitKindName(args)
	if err != nil {
		return err
	}
	if err := errors.Join(o.running.Check(), o.drawing.Check()); err != nil {
		return err
	}
	files, cfg, err := o.load()
	if err != nil {
		return err
	}
	names, err := command.DiscoverNames(cfg, files)
	if err != nil {
		return err
	}
	k, target, err := names.Target(&o.connection, kind, name)
	if err != nil {
		return err
	}
	client, err := command.DynamicFor(cfg)
	if err != nil {
		return err
	}
	object, err := readNamed(ctx, client, k, target)
	if errors.Is(err, apply.ErrGone) && target.Namespace != "" && o.connection.Overrides.Context.Namespace == "" {
		return fmt.Errorf("%w: if it is in another namespace, name that with -n", err)
	}
	if err != nil {
		return err
	}
	found, err := explain.Explain(ctx, explain.Options{Files: files, Kinds: names.Kinds(), Client: client,
		Open: o.opener(cfg, files)},
		k.Kind, object)
	if err == nil {
		err = o.remark(ctx, cfg, files, found)
	}
	switch {
	case o.drawing.Value == command.Text:
		printExplanation(o.streams.Out, o.color.Painter(o.streams), found)
		return err
	case err != nil:
		return err
	case o.drawing.Value == command.JSON:
		return printExplanationJSON(o.streams.Out, found)
	}
	drawn, remarks := graphOf(found)
	if len(drawn.Groups) == 0 {
		return fmt.Errorf("there is nothing to draw: %s", strings.Join(remarks, "; "))
	}
	command.WriteNotes(o.streams, remarks)
	return o.drawing.Draw(ctx, o.streams.Out, drawn)
}

// remark adds what is not about one upstream.
func (o *whyOptions) remark(
	ctx context.Context, cfg *rest.Config, files []*load.File, found *explain.Explanation,
) error {
	note := func(format string, args ...any) {
		found.Parts = append(found.Parts, explain.Part{Remark: fmt.Sprintf(format, args...)})
	}
	if err := o.noteConversions(ctx, cfg, files, note); err != nil || o.running.Name == "" {
		return err
	}
	return o.running.note(ctx, cfg, &o.connection, note)
}

// readNamed reads the object that a person named. A row has only a name here: the survey of its operator reads it.
func readNamed(ctx context.Context, client dynamic.Interface, k *command.NamedKind,
	target apply.Target) (*unstructured.Unstructured, error) {
	if k.IsRow() {
		row := &unstructured.Unstructured{}
		row.SetGroupVersionKind(k.GVK)
		row.SetName(target.Name)
		return row, nil
	}
	return apply.New(client, "why").Get(ctx, target)
}

// opener returns what surveys one operator, in one namespace where its upstreams have one.
func (o *whyOptions) opener(
	cfg *rest.Config, files []*load.File,
) func(context.Context, int, string) (*survey.Survey, error) {
	noted := map[int]bool{} // whose mode was printed
	return func(ctx context.Context, n int, namespace string) (*survey.Survey, error) {
		f := o.surveyFlags
		f.connection.Overrides.Context.Namespace = namespace
		s, line, err := f.surveyor(cfg, survey.Options{Documents: true})
		if err != nil {
			return nil, err
		}
		defer line.clear()
		if !noted[n] {
			noteMode(files[n], line.note)
			noted[n] = true
		}
		return s.Open(ctx, files[n])
	}
}
