package stored

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/backup/selection"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

type restoreOptions struct {
	streams         command.IO
	configs         command.Configs
	connection      command.Connection
	onConflict      command.Choice
	namespaces      []string
	identity        string
	manager         string
	dryRun, noPause bool
}

func newRestore(streams command.IO) *cobra.Command {
	o := &restoreOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "restore {DIRECTORY | FILE.tar.zst}",
		Short: "Restore custom resources from a backup",
		Long: `Restore what "corollary backup" wrote, into the same cluster or another one. The plan is
printed first; nothing is written until all checksums have been compared.

CustomResourceDefinitions and namespaces that are missing are created; those that exist
stay as they are. Owners are restored before what they own, and references to them get
the uids that they have now. Status and managedFields are restored as well. If the
API server stores something else than was sent, that is reported. Objects that it refuses
do not stop the others: they are reported at the end, and the exit code is 1. Run an
interrupted restore again: objects that are restored already are left alone.

With --dry-run nothing is written: the API server is asked for every write, and what it
would refuse or drop is reported. Of objects in kinds and namespaces that do not exist yet,
it can say nothing, and they are counted as unknown.

A running operator does not interfere: the upstreams are created paused, by the
annotation conventions.pause of the config that the backup was made with, or of -c, and
unpaused at the end. If a config has no such annotation, stop the operator and add
--no-pause. If names in a config have changed since the backup, give the config with -c:
objects are restored with its names.

An object that belongs to an owner which exists, and is not restored as its owner, is
never replaced: it is reported, and the exit code is 1.

The rights to get, list, create, update and patch the kinds, to patch their status, and
to get owners, namespaces and customresourcedefinitions are needed; if they are missing,
also to create namespaces, and to create and patch customresourcedefinitions. If a right
is missing, the command names it and writes nothing.`,
		Example: `  # Show the plan
  corollary restore app.tar.zst --dry-run

  corollary restore app.tar.zst

  # Into another namespace, replacing existing objects that differ
  corollary restore app.tar.zst --namespace-map team-a=team-b --on-conflict replace`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Usagef("name one backup: a directory or a FILE.tar.zst")
			}
			return nil
		},
		RunE: command.RunUntilSignal(o.run),
	}
	o.bind(cmd)
	return cmd
}

func (o *restoreOptions) bind(cmd *cobra.Command) {
	o.configs.Bind(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false,
		"Write nothing: ask the API server for every write as a dry run. The exit code is 1 if the restore would fail or "+
			"lose something")
	o.onConflict.Words = []string{backup.Fail, backup.Skip, backup.Replace}
	command.BindChoice(cmd, &o.onConflict, "on-conflict", "",
		"What to do if objects exist and are not as in the backup: fail (write nothing), skip (leave them) or replace "+
			"(update them)")
	flags.StringArrayVar(&o.namespaces, "namespace-map", nil,
		"FROM=TO: restore objects of a namespace into another one; may be repeated")
	flags.StringVar(&o.identity, "age-identity", "", "File with the age key for Secrets; without it they are left out")
	flags.BoolVar(&o.noPause, "no-pause", false, "Do not pause upstreams: no operator is running")
	flags.StringVar(&o.manager, "field-manager", "corollary-restore",
		"Field manager of what is not finished; at the end it owns no field")
	o.connection.Bind(cmd, "")
}

func (o *restoreOptions) run(ctx context.Context, args []string) (err error) {
	mapped, err := o.mapping()
	if err != nil {
		return err
	}
	identities, err := o.identities()
	if err != nil {
		return err
	}
	archive, err := archive.Open(args[0], identities)
	if err != nil {
		return fmt.Errorf("reading the backup: %w", err)
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	if err := checkMapping(mapped, archive.Manifest); err != nil {
		return err
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	operators, files, err := o.operators(cfg, archive)
	if err != nil {
		return err
	}
	r := &backup.Restore{Archive: archive, Operators: operators, OnConflict: o.onConflict.Value,
		Namespaces: mapped, FieldManager: o.manager,
		NoPause: o.noPause, DryRun: o.dryRun,
		Converter: func(crd *apiextensionsv1.CustomResourceDefinition) *convert.Converter {
			if c, errs := conversions.Of(files, crd); c != nil && len(errs) == 0 {
				return c.Converter
			}
			return nil
		}}
	if r.Client, err = command.DynamicFor(cfg); err != nil {
		return err
	}
	if r.Discovery, err = discovery.NewDiscoveryClientForConfig(cfg); err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	plan, err := r.Plan(ctx)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	o.printPlan(plan, len(operators) > 0)
	result, err := r.Run(ctx, plan)
	return o.report(result, err)
}

// mapping reads --namespace-map.
func (o *restoreOptions) mapping() (map[string]string, error) {
	mapped := map[string]string{}
	for _, text := range o.namespaces {
		from, to, ok := strings.Cut(text, "=")
		if !ok || len(validation.IsDNS1123Label(from)) > 0 || len(validation.IsDNS1123Label(to)) > 0 {
			return nil, command.Usagef("--namespace-map is %q: write FROM=TO, the names of two namespaces", text)
		}
		if mapped[from] != "" {
			return nil, command.Usagef("--namespace-map names %s twice", from)
		}
		mapped[from] = to
	}
	return mapped, nil
}

// checkMapping refuses namespaces that the backup does not have: a slip would restore over what is there.
func checkMapping(mapped map[string]string, m *archive.Manifest) error {
	var has []string
	for _, f := range m.Files {
		if f.Namespace != "" && !slices.Contains(has, f.Namespace) {
			has = append(has, f.Namespace)
		}
	}
	slices.Sort(has)
	for _, from := range slices.Sorted(maps.Keys(mapped)) {
		if !slices.Contains(has, from) {
			return command.Usagef("--namespace-map names %s, which is not in the backup: it has %s", from,
				cmp.Or(strings.Join(has, ", "), "no namespaces"))
		}
	}
	source := map[string]string{}
	for _, from := range has {
		to := cmp.Or(mapped[from], from)
		if other, ok := source[to]; ok {
			return command.Usagef(
				"the namespaces %s and %s of the backup would both become %s, and objects of one name would replace each other: "+
					"map them to different namespaces", other, from, to)
		}
		source[to] = from
	}
	return nil
}

func (o *restoreOptions) identities() ([]age.Identity, error) {
	if o.identity == "" {
		return nil, nil
	}
	f, err := os.Open(o.identity)
	if err != nil {
		return nil, fmt.Errorf("reading --age-identity: %w", err)
	}
	defer f.Close()
	list, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("reading --age-identity: %w", err)
	}
	return list, nil
}

// operators are those of -c, with the names that are used now, else those that the backup was made with. One that
// cannot be paused is refused, unless --no-pause is given.
func (o *restoreOptions) operators(
	cfg *rest.Config, archive *archive.Archive,
) ([]archive.Operator, []*load.ConversionFile, error) {
	operators, converting := slices.Clone(archive.Manifest.Operators), []*load.ConversionFile(nil)
	if len(o.configs.Files) > 0 {
		files, err := o.configs.Valid(o.streams)
		if err != nil {
			return nil, nil, err
		}
		if converting, err = o.configs.ValidConversions(files, o.streams); err != nil {
			return nil, nil, err
		}
		names, err := command.DiscoverNames(cfg, files)
		if err != nil {
			return nil, nil, err
		}
		if len(files) > 0 {
			operators = nil
		}
		for _, f := range files {
			resource := archive.Manifest.Resource(f.Watch.APIVersion, f.Watch.Kind)
			i := slices.IndexFunc(names.Served, func(k *command.NamedKind) bool {
				return k.Is(f.Watch.APIVersion, f.Watch.Kind)
			})
			if i >= 0 {
				resource = names.Served[i].GVR.GroupResource()
			}
			operators = append(operators, selection.OperatorOf(f, &kinds.Kind{GVR: resource.WithVersion("")}))
		}
	}
	for i := range operators {
		if operators[i].Pause == "" && !o.noPause {
			return nil, nil, fmt.Errorf(
				"operator %s has no conventions.pause.annotation, so a running one would interfere: stop it and "+
					"add --no-pause, "+
					"or add the annotation to its config and name that with -c", operators[i].Name)
		}
	}
	if len(operators) == 0 && !o.noPause {
		command.WriteNotes(o.streams, []string{
			"the backup names no operator, so nothing is paused: name the configs of those that watch these kinds with -c",
		})
	}
	return operators, converting, nil
}

func (o *restoreOptions) printPlan(plan *backup.Plan, hasOperators bool) {
	out := o.streams.Out
	for _, name := range plan.Definitions {
		fmt.Fprintf(out, "create CustomResourceDefinition %s\n", name)
	}
	for _, name := range plan.Namespaces {
		fmt.Fprintf(out, "create Namespace %s\n", name)
	}
	different := map[string]string{backup.Fail: "in conflict", backup.Skip: "to skip",
		backup.Replace: "to replace"}[o.onConflict.Value]
	for _, k := range plan.Kinds {
		var parts []string
		for _, part := range []struct {
			n    int
			what string
		}{{k.Created, "to create"}, {k.Unfinished, "to finish"}, {k.Different, different}, {k.Equal, "equal"},
			{k.Unreadable, "left out, encrypted: add --age-identity"}} {
			if part.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
			}
		}
		if len(parts) == 0 {
			parts = []string{"nothing to do"}
		}
		fmt.Fprintf(out, "%s: %s\n", k.Name, strings.Join(parts, ", "))
		for _, missing := range k.Missing {
			fmt.Fprintf(out, "  create %s\n", missing)
		}
		if more := k.Created - len(k.Missing); more > 0 {
			fmt.Fprintf(out, "  … and %d more\n", more)
		}
	}
	for _, d := range plan.Differences {
		fmt.Fprintln(out, "  "+d.String())
	}
	if more := plan.Different() - len(plan.Differences); more > 0 {
		fmt.Fprintf(out, "  … and %d more\n", more)
	}
	for _, p := range plan.Refused {
		fmt.Fprintln(out, "  cannot be restored: "+p.String())
	}
	for _, right := range plan.Rights {
		fmt.Fprintln(out, "  missing right: "+right)
	}
	notes := plan.Notes
	if len(o.namespaces) > 0 && hasOperators {
		notes = append(notes, "the hash of a downstream covers its namespace, so operators apply the downstreams of "+
			"mapped namespaces "+
			"once more; afterwards another restore reports their hashes as conflicts")
	}
	command.WriteNotes(o.streams, notes)
}

// report prints what was done, or would be. Whatever is not in the cluster as it is in the backup is an error.
func (o *restoreOptions) report(result *backup.Result, err error) error {
	words := map[bool][3]string{
		false: {"nothing was written", "%d created, %d replaced, %d finished\n",
			"could not be restored: fix them and run the command again"},
		true: {"nothing would be written", "%d would be created, %d replaced, %d finished\n", "could not be restored"},
	}[o.dryRun]
	var rights backup.RightsError
	if errors.Is(err, backup.ErrConflict) || errors.As(err, &rights) {
		return fmt.Errorf("%s: %w", words[0], err)
	}
	fmt.Fprintf(o.streams.Out, words[1], result.Created, result.Replaced, result.Finished)
	for _, u := range result.Unknown {
		fmt.Fprintf(o.streams.Out, "%s: unknown whether %s can be restored: %s\n", u.Kind,
			command.Count(u.Objects, "object"), u.Why)
	}
	for _, object := range result.Guessed {
		fmt.Fprintf(o.streams.Err,
			"warning: %s: managers applied it in a version that the cluster does not have, and no conversion of their "+
				"fields is known, so they own all fields that no other manager owns: give the conversion with -c\n", object)
	}
	for _, p := range result.Refused {
		fmt.Fprintln(o.streams.Err, p)
	}
	for _, p := range result.Changed {
		fmt.Fprintln(o.streams.Err, "stored in another way: "+p.String())
	}
	switch {
	case err != nil && o.dryRun:
		return fmt.Errorf("the restore would not be complete: %w", err)
	case err != nil:
		return fmt.Errorf("the restore is not complete, run it again: %w", err)
	case len(result.Refused) > 0:
		return fmt.Errorf("%s %s", command.Count(len(result.Refused), "object"), words[2])
	case len(result.Changed) > 0:
		objects := map[string]bool{} // the status of one is listed by itself
		for _, p := range result.Changed {
			objects[p.Object] = true
		}
		return fmt.Errorf("%s of the cluster %s from the backup", command.Count(len(objects), "object"),
			map[bool]string{false: "differ", true: "would differ"}[o.dryRun])
	}
	return nil
}
