package generate

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

type bundle struct {
	maker
	samples []string
	dir     string
	force   bool
	bundle  generate.BundleOptions
}

func newOLM(streams command.IO) *cobra.Command {
	o := &bundle{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
		Use:   "olm-bundle -c CONFIG --package NAME --version VERSION --image IMAGE --dir DIR",
		Short: "Write a bundle for the Operator Lifecycle Manager",
		Long: `Write a bundle in the format registry+v1: a ClusterServiceVersion with the rights that
configs need, the configs as a ConfigMap, the definitions of the watched kinds (those
among --crds, and those that configs describe by watch.schema), annotations, and the
Dockerfile of the image that carries them.

OLM grants rights in its own namespace or in the whole cluster, and only to accounts
of the bundle: rights in other namespaces become cluster-wide, which a note says, and
configs with serviceAccount are refused.`,
		Example: `  corollary generate olm-bundle -c apps/ --crds crds/ -f samples/ --dir bundle \
    --package app-operator --version 1.2.3 --image registry.example.com/corollary:1.2.3`,
	})
	flags := cmd.Flags()
	command.BindFiles(cmd, &o.samples, "filename", "f",
		"File or directory with example custom resources, which a console shows; may be repeated", "yaml", "yml", "json")
	flags.StringVar(&o.bundle.Package, "package", "", "Name of the package, and of all that the bundle installs")
	flags.StringVar(&o.bundle.Version, "version", "", "Version of the package, such as 1.2.3")
	flags.StringVar(&o.bundle.Image, "image", "", "Container image of Corollary")
	flags.StringSliceVar(&o.bundle.Channels, "channels", []string{"stable"},
		"Channels that offer the bundle, the default one first")
	flags.StringVar(&o.bundle.Replaces, "replaces", "",
		"Name of the ClusterServiceVersion that this one replaces, such as app-operator.v1.2.2")
	flags.StringVar(&o.dir, "dir", "", "Directory to write into")
	flags.BoolVar(&o.force, "force", false, "Overwrite existing files")
	_ = cmd.MarkFlagDirname("dir") // the only error is a flag that does not exist
	return cmd
}

// check refuses what cannot be meant, before anything is read.
func (o *bundle) check() error {
	for _, needed := range []struct{ flag, value string }{
		{"--package NAME", o.bundle.Package}, {"--version VERSION", o.bundle.Version},
		{"--image IMAGE", o.bundle.Image}, {"--dir DIR", o.dir},
	} {
		if needed.value == "" {
			return command.Usagef("a bundle needs %s", needed.flag)
		}
	}
	if problems := validation.IsDNS1123Label(o.bundle.Package); len(problems) > 0 {
		return command.Usagef("--package %q is not a valid name for a package: %s", o.bundle.Package, problems[0])
	}
	if _, err := semver.StrictNewVersion(o.bundle.Version); err != nil {
		return command.Usagef("--version %q is not a semantic version such as 1.2.3", o.bundle.Version)
	}
	switch {
	case len(o.bundle.Channels) == 0:
		return command.Usagef("--channels is empty: name one, such as stable")
	case len(o.configs.Set) > 0:
		return command.Usagef("--set is not supported here: the bundle holds the config files as they are")
	case o.configs.ReadsStdin():
		return command.Usagef("-c - is not supported here: give a file, so that the files that it names are found")
	}
	return nil
}

func (o *bundle) run() error {
	if err := o.check(); err != nil {
		return err
	}
	files, source, err := o.configs.Offline(o.streams, o.crds)
	if err != nil {
		return err
	}
	o.bundle.Kinds = source
	if err := o.read(); err != nil {
		return err
	}
	described, err := o.describedBy(files, source)
	if err != nil {
		return err
	}
	for _, d := range described {
		if !slices.ContainsFunc(
			o.bundle.Definitions,
			func(have *unstructured.Unstructured) bool { return have.GetName() == d.Object.GetName() },
		) {
			o.bundle.Definitions = append(o.bundle.Definitions, d.Object)
		}
	}
	made, notes, err := generate.Bundle(files, o.bundle)
	var refused *config.Error
	if errors.As(err, &refused) {
		return command.Refuse(o.streams, config.Errors{refused}, nil)
	}
	if err != nil {
		return err
	}
	command.WriteNotes(o.streams, notes)
	return o.write(made)
}

// read reads what is given beside the configs.
func (o *bundle) read() error {
	var err error
	if o.bundle.Definitions, err = kinds.Definitions(o.crds...); err != nil {
		return err
	}
	samples, errs := offline.Read(o.samples, o.streams.In)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, s := range samples {
		o.bundle.Samples = append(o.bundle.Samples, s.Object)
	}
	o.bundle.Read = os.ReadFile
	return nil
}

func (o *bundle) write(made []generate.BundleFile) error {
	var list []command.File
	for _, f := range made {
		text := f.Text
		if f.Content != nil {
			var err error
			if text, err = yamltext.Of(f.Content); err != nil {
				return err
			}
		}
		list = append(list, command.File{Name: f.Path, Text: text})
	}
	names, err := command.WriteNew(o.dir, list, o.force, "name another directory with --dir")
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(o.streams.Out, name)
	}
	return nil
}
