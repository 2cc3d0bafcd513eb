package convert

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/rules"
)

type proveOptions struct {
	convertOptions
	seed       uint64
	objects    int
	output     string
	live       bool
	connection command.Connection
}

func newProve(streams command.IO) *cobra.Command {
	o := &proveOptions{convertOptions: convertOptions{streams: streams}}
	cmd := &cobra.Command{
		Use:   "prove -c CONFIG (--crds FILE | --live)",
		Short: "Prove that a conversion loses nothing",
		Long: `Make objects from the schemas of all versions and convert them there and back, with
what the API server does on the way: it drops unknown fields, fills in defaults and
validates. What comes back must be what it was.

Objects are made at the bounds of every two fields, and at random. If there are more
combinations of bounds than --objects, a random sample of them is tried, and the output
says so. If an object comes back different, the smallest such object that was found is
printed, and the exit code is 1.

Fields that survive only in the annotation of preserve are listed. None of them should
be in both versions, because the other version would show a wrong value.

With --live nothing is made: the objects that the cluster has are taken there and back.
Nothing is written to the cluster, and no value of an object is printed. The
definitions are the cluster's, so --crds is left out.

With --output a certificate is written. "corollary run" serves a conversion only with
a certificate for exactly its rules and schemas: keep it with the config.`,
		Example: `  corollary convert prove -c conversion.yaml --crds crd.yaml

  # Try what the cluster has, before the conversion is served
  corollary convert prove -c conversion.yaml --live

  # Write the certificate
  corollary convert prove -c conversion.yaml --crds crd.yaml -o conversion.certificate.yaml`,
		Args: command.NoArguments("configs are named with -c, CustomResourceDefinitions with --crds"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.UntilSignal(cmd.Context())
			defer stop()
			if o.live {
				return o.runLive(ctx, cmd)
			}
			return o.run(ctx)
		},
	}
	o.bind(cmd)
	o.connection.Bind(cmd, "")
	flags := cmd.Flags()
	flags.BoolVar(&o.live, "live", false, "Try the objects that the cluster has, instead of made ones")
	flags.Uint64Var(&o.seed, "seed", 1, "Seed of the random objects: the same seed makes the same objects")
	flags.IntVar(&o.objects, "objects", conversions.ObjectsToProve,
		"How many random objects to make for each version and direction")
	flags.StringVarP(&o.output, "output", "o", "", "Write the certificate to this file")
	return cmd
}

func (o *proveOptions) run(ctx context.Context) error {
	if o.objects < 1 {
		return command.Usagef("--objects %d: at least 1 object must be made", o.objects)
	}
	list, err := o.compile()
	if err != nil {
		return err
	}
	if len(list) > 1 && o.output != "" {
		return command.Usagef("--output takes one certificate, and %d conversions are named: name one with -c", len(list))
	}
	lossy := 0
	for _, c := range list {
		proof, err := prove.Prove(ctx, c.Converter, prove.Options{Seed: o.seed, Objects: o.objects})
		if err != nil {
			return fmt.Errorf("proving %s: %w", c.File.Name, err)
		}
		o.print(c, proof)
		if !proof.Valid() {
			lossy++
			continue
		}
		if o.output == "" {
			continue
		}
		certificate := prove.Certify(c.Converter, &c.File.Conversion, proof, o.seed)
		if err := certificate.Record(c.CRD); err != nil {
			return err
		}
		text, err := yaml.Marshal(certificate)
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.output, text, 0o644); err != nil { //nolint:gosec // it is no secret
			return fmt.Errorf("writing the certificate: %w", err)
		}
	}
	if lossy > 0 {
		return fmt.Errorf("conversions that lose data, or are not proven: %d of %d", lossy, len(list))
	}
	return nil
}

// print writes one line for each pair, and its counterexample.
func (o *proveOptions) print(c *conversions.Conversion, proof *prove.Proof) {
	fmt.Fprintf(o.streams.Out, "%s (%s)\n", c.File.Name, c.File.For)
	for _, problem := range proof.Unproven {
		fmt.Fprintf(o.streams.Out, "  NOT PROVEN: %s\n", problem)
	}
	if cost := proof.MaxCost(); cost > 0 && len(proof.Unproven) == 0 {
		room := ""
		if n := prove.ReviewCost / cost; n < prove.ReviewObjects {
			room = fmt.Sprintf("; of such objects, a review has time for %d", n)
		}
		fmt.Fprintf(o.streams.Out, "  one object costs at most %d of %d units%s\n", cost, rules.CostPerObject, room)
	}
	for _, pair := range proof.Pairs {
		fmt.Fprintf(o.streams.Out, "  %s → %s → %s: %s (%s)\n", pair.From, pair.Via, pair.From, verdict(&pair), tried(&pair))
		for _, field := range slices.Sorted(maps.Keys(pair.Lost)) {
			fmt.Fprintf(o.streams.Out, "    lost as acknowledged: %s (in %s)\n", field,
				command.Count(pair.Lost[field], "object"))
		}
		for _, field := range slices.Sorted(maps.Keys(pair.Kept)) {
			fmt.Fprintf(o.streams.Out, "    by the annotation: %s (in %s)\n", field, command.Count(pair.Kept[field], "object"))
		}
		if pair.Counterexample == nil {
			continue
		}
		fmt.Fprintf(o.streams.Out, "    %s\n", pair.Counterexample.Problem)
		for _, shown := range []struct {
			title string
			obj   map[string]any
		}{{"object", pair.Counterexample.Object}, {"in " + pair.Via, pair.Counterexample.There},
			{"and back", pair.Counterexample.Back}} {
			if shown.obj == nil {
				continue
			}
			text, err := yaml.Marshal(shown.obj)
			if err != nil {
				text = []byte(err.Error() + "\n")
			}
			fmt.Fprintf(o.streams.Out, "    %s:\n%s\n", shown.title, command.Indent(string(text), "      "))
		}
	}
}

// verdict says what was found about one pair.
func verdict(pair *prove.Pair) string {
	switch {
	case pair.Counterexample != nil:
		return "LOST"
	case pair.Objects == 0:
		return "NOT PROVEN: no valid object could be made from the schema"
	case pair.ByConstruction:
		return "nothing is lost, by construction"
	case len(pair.Lost) > 0:
		return "nothing is lost that is not acknowledged"
	}
	return "nothing is lost"
}

// tried says what was tried of one pair.
func tried(pair *prove.Pair) string {
	text := command.Count(pair.Objects, "object")
	if pair.Combinations > 0 {
		text += fmt.Sprintf(", %d of them at the bounds of two fields", pair.Combinations)
	}
	if pair.SampledFrom > 0 {
		text += fmt.Sprintf(", a sample of %d combinations", pair.SampledFrom)
	}
	if pair.Refused > 0 {
		text += fmt.Sprintf("; %d more were not valid", pair.Refused)
	}
	return text
}
