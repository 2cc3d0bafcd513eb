package offline

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/scaffold"
)

const (
	operatorFile   = "operator.yaml"
	definitionFile = "crd.yaml"
	sampleFile     = "cr.yaml"
)

// at is the path of a file that is written, as the next commands name it.
func (o *initOptions) at(file string) string { return filepath.Join(o.dir, filepath.FromSlash(file)) }

// write writes the files, all or, where one is there already, none. It returns their names.
func (o *initOptions) write(d *scaffold.Draft) ([]string, error) {
	var files []command.File
	if d.Definition != "" {
		files = append(files, command.File{Name: definitionFile, Text: d.Definition})
	}
	files = append(files, command.File{Name: operatorFile, Text: d.Operator})
	if d.Conventions != "" {
		files = append(files, command.File{Name: o.conventions.File, Text: d.Conventions})
	}
	files = append(files, command.File{Name: sampleFile, Text: d.Sample})
	text, err := o.caseText(d)
	if err != nil {
		return nil, err
	}
	return command.WriteNew(o.dir, append(files, command.File{Name: caseFile(d), Text: text}), o.force,
		"name another directory with --dir")
}

// definitions are the files with definitions to go on with, that of the upstream first if there is one.
func (o *initOptions) definitions(d *scaffold.Draft) []string {
	if o.schema != "" {
		return o.crds
	}
	own := o.at(definitionFile)
	if d.Definition == "" {
		own = o.crd
	}
	return append([]string{own}, o.crds...)
}

// check holds what was written to what the check command wants.
func (o *initOptions) check(d *scaffold.Draft) error {
	source, err := kinds.Offline(o.definitions(d)...)
	if err != nil {
		return err
	}
	files, problems := load.Operators(load.Options{Files: []string{o.at(operatorFile)}})
	_, problems, err = compile.All(files, problems, compile.Options{Kinds: source})
	return command.Refuse(o.streams, problems, err)
}

// printSummary says what was made, what to mind, and how to go on.
func (o *initOptions) printSummary(d *scaffold.Draft, files []string) {
	out := o.streams.Out
	d.Describe(out)
	fmt.Fprintf(out, "written: %s\n", strings.Join(files, ", "))
	if d.Conventions == "" {
		fmt.Fprintf(out, "used: %s\n", o.at(o.conventions.File))
	}
	command.WriteNotes(o.streams, append(o.notes, d.Notes...))
	crds := ""
	for _, file := range o.definitions(d) {
		crds += " --crds " + file
	}
	fmt.Fprintf(out, "\nNext:\n  %[1]s check -c %[2]s%[3]s\n  %[1]s render -c %[2]s%[3]s -f %[4]s\n  %[1]s test %[5]s\n",
		o.program, o.at(operatorFile), crds, o.at(sampleFile), o.at(casesDir))
	if o.schema != "" {
		fmt.Fprintf(out, "  %[1]s run --install-crds -c %[2]s\n  kubectl apply -f %[3]s\n", o.program,
			o.at(operatorFile), o.at(sampleFile))
		return
	}
	fmt.Fprintf(out, "  kubectl apply -f %[1]s\n  kubectl apply -f %[2]s\n  %[3]s plan -c %[4]s\n  %[3]s run -c %[4]s\n",
		o.definitions(d)[0], o.at(sampleFile), o.program, o.at(operatorFile))
}
