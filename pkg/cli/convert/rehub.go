package convert

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/convert/rehub"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

func newRehub(streams command.IO) *cobra.Command {
	o := &proveOptions{convertOptions: convertOptions{streams: streams}}
	cmd := &cobra.Command{
		Use:   "rehub -c CONFIG --crds FILE VERSION",
		Short: "Make another version the hub of a conversion",
		Long: `Rewrite a conversion so that all versions convert through another one, and print it.
The rules between that version and the old hub are inverted. The rules of every other
version are put in a row with them: moves become one move, and expressions are written
into each other. No file is changed.

The result is tried before it is printed. It must lose nothing, as in "convert prove",
and it must convert made objects of all versions to what the old rules convert them to.
If it does not, the exit code is 1. What cannot be written as rules is listed at the end,
marked "to do".`,
		Example: `  corollary convert rehub -c conversion.yaml --crds crd.yaml v2 > conversion-v2.yaml`,
		RunE:    command.RunUntilSignal(o.rehub),
	}
	o.bind(cmd)
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "Seed of the random objects: the same seed makes the same objects")
	cmd.Flags().IntVar(&o.objects, "objects", conversions.ObjectsToProve,
		"How many random objects to make for each version and direction")
	return cmd
}

func (o *proveOptions) rehub(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return command.Usagef(
			"exactly one version must be named, the new hub: corollary convert rehub -c FILE --crds FILE v2")
	}
	hub := args[0]
	list, err := o.compile()
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return command.Usagef("%d conversions are named: name one with -c", len(list))
	}
	old := list[0]
	made, problems, err := rehub.Rehub(&old.File.Conversion, hub, old.Versions)
	if err != nil {
		return fmt.Errorf("%s cannot be the hub of %s: %w", hub, old.File.Name, err)
	}
	converter, more := convert.Compile(made, convert.Options{
		Kind: old.File.For, Versions: old.Versions, Stored: kinds.StoredVersion(old.CRD),
		Namespaced: kinds.IsNamespaced(old.CRD),
	})
	problems = append(problems, more...)
	if err := o.printRehubbed(old, made, problems); err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s to do: see the end of what is printed", command.Count(len(problems), "thing"))
	}
	options := prove.Options{Seed: o.seed, Objects: o.objects}
	found, err := prove.Compare(ctx, old.Converter, converter, options)
	if err != nil {
		return err
	}
	if found != nil {
		text, err := yaml.Marshal(found.Object)
		if err != nil {
			return err
		}
		return fmt.Errorf("an object would be converted differently: %s:\n%s", found.Problem,
			command.Indent(string(text), "  "))
	}
	proof, err := prove.Prove(ctx, converter, options)
	if err != nil {
		return err
	}
	if !proof.Valid() {
		o.streams.Out = o.streams.Err
		o.print(&conversions.Conversion{File: old.File, Converter: converter}, proof)
		return fmt.Errorf("with %s as the hub, the conversion loses data", hub)
	}
	fmt.Fprintf(o.streams.Err, "nothing is lost, and made objects are converted as before\n")
	return nil
}

// printRehubbed writes a conversion in the form that it has in its config, and what is to be done by hand.
func (o *proveOptions) printRehubbed(
	old *conversions.Conversion, made *conversion.Conversion, problems []*convert.Problem,
) error {
	text, err := yaml.Marshal(old.File.Rewritten(made))
	if err != nil {
		return err
	}
	var b strings.Builder
	b.Write(text)
	for _, p := range problems {
		fmt.Fprintf(&b, "# to do: %s: %s\n", p.Path, p.Message)
	}
	_, err = o.streams.Out.Write([]byte(b.String()))
	return err
}
