package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// written is a file that init writes.
type written struct{ file, text string }

const (
	operatorFile   = "operator.yaml"
	definitionFile = "crd.yaml"
	sampleFile     = "cr.yaml"
)

// write writes the files, all or, where one is there already, none. It returns their names.
func (o *initOptions) write(made *harvest) ([]string, error) {
	files, err := o.files(made)
	if err != nil {
		return nil, err
	}
	var taken, names []string
	for _, f := range files {
		names = append(names, o.at(f.file))
		_, err := os.Lstat(o.at(f.file))
		switch {
		case err == nil:
			taken = append(taken, o.at(f.file))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("writing the config: %w", err)
		}
	}
	if len(taken) > 0 && !o.force {
		return nil, fmt.Errorf("nothing is written: %s would be overwritten: name another directory with --dir, or add --force", strings.Join(taken, ", "))
	}
	for i, f := range files {
		if err := os.MkdirAll(filepath.Dir(names[i]), 0o755); err != nil {
			return nil, fmt.Errorf("writing the config: %w", err)
		}
		if err := os.WriteFile(names[i], []byte(f.text), 0o644); err != nil {
			return nil, fmt.Errorf("writing the config: %w", err)
		}
	}
	return names, nil
}

func (o *initOptions) files(made *harvest) ([]written, error) {
	op := made.operator
	var files []written
	text, err := op.upstream.text(made.fields)
	if err != nil {
		return nil, err
	}
	if text != "" {
		files = append(files, written{definitionFile, text})
	}
	files = append(files, written{operatorFile, op.text()})
	if !op.shared.found {
		files = append(files, written{op.shared.file, op.shared.text()})
	}
	if text, err = readable(made.sample); err != nil {
		return nil, err
	}
	files = append(files, written{sampleFile, text})
	if text, err = o.caseText(made, text); err != nil {
		return nil, err
	}
	return append(files, written{made.caseFile(), text}), nil
}

// text is the definition to write, empty where the one that is there has all that is needed.
func (u *newUpstream) text(fields *branch) (string, error) {
	if u.known == nil {
		return u.definition(fields)
	}
	text, err := u.complete(fields)
	u.completed = text != ""
	return text, err
}

// definitions are the files with definitions to go on with, that of the upstream first.
func (o *initOptions) definitions(u *newUpstream) []string {
	own := o.at(definitionFile)
	if u.known != nil && !u.completed {
		own = u.path
	}
	return append([]string{own}, o.crds...)
}

// check holds what was written to what the check command wants.
func (o *initOptions) check(made *harvest) error {
	source, err := kinds.Offline(o.definitions(made.operator.upstream)...)
	if err != nil {
		return err
	}
	files, problems := config.Load(config.Options{Files: []string{o.at(operatorFile)}})
	_, more, err := compile(files, pipeline.Options{Kinds: source})
	return refuse(o.streams, further(problems, more), err)
}

// tell says what was made, what to mind, and how to go on.
func (o *initOptions) tell(made *harvest, files []string) {
	op, out := made.operator, o.streams.Out
	apiVersion, kind := op.upstream.kind.ToAPIVersionAndKind()
	fmt.Fprintf(out, "upstream: %s (%s)\n", kind, apiVersion)
	for _, s := range op.seeds {
		apiVersion, kind := s.kind.ToAPIVersionAndKind()
		fmt.Fprintf(out, "downstream %s: %s (%s)\n", s.downstream, kind, apiVersion)
		for _, h := range made.holes {
			if h.seed == s {
				fmt.Fprintf(out, "  %s is .spec.%s of the upstream\n", h.path, strings.Join(h.field, "."))
			}
		}
	}
	fmt.Fprintf(out, "written: %s\n", strings.Join(files, ", "))
	if op.shared.found {
		fmt.Fprintf(out, "used: %s\n", o.at(op.shared.file))
	}
	for _, note := range o.notes {
		fmt.Fprintf(o.streams.Err, "note: %s\n", note)
	}
	definitions := o.definitions(op.upstream)
	crds := " --crds " + strings.Join(definitions, " --crds ")
	fmt.Fprintf(out, "\nNext:\n  %[1]s check -c %[2]s%[3]s\n  %[1]s render -c %[2]s%[3]s -f %[4]s\n  %[1]s test %[5]s\n",
		o.program, o.at(operatorFile), crds, o.at(sampleFile), o.at(casesDir))
	fmt.Fprintf(out, "  kubectl apply -f %[1]s\n  kubectl apply -f %[2]s\n  %[3]s plan -c %[4]s\n  %[3]s run -c %[4]s\n",
		definitions[0], o.at(sampleFile), o.program, o.at(operatorFile))
}
