package generate

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// keepAnnotation has Helm leave an object where a release is uninstalled or no longer has it.
const keepAnnotation = "helm.sh/resource-policy"

// ChartOptions are what the values of the Helm chart are made from.
type ChartOptions struct {
	Operators []*load.File
	// Conversions are those of the operators, and those in files of their own.
	Conversions []*load.ConversionFile
	// Beside are the files of other kinds that are read with the configs: of conversions, certificates and activations.
	Beside []string
	// Read gives the content of a file.
	Read func(path string) ([]byte, error)
	// Kinds knows the resource and the scope of kinds.
	Kinds kinds.Source
	// Described are the definitions of the kinds that configs describe.
	Described []*Definition
}

// ChartValues are the values of the Helm chart: operatorFiles, files, kinds, conversion and, of kinds that configs
// describe, crds. The notes are sentences about what a person has to do, and about what the chart guesses.
//
// Configs go in byte for byte, since Helm would turn large integers of values into floats. Only names of files change:
// one that lies above its config is mounted beside it, and a template that would be read as a config there is mounted
// in a folder.
//
// kinds names those that the chart could not guess the resource or the scope of, as far as o.Kinds knows them. An error
// names the operator, and a file that cannot be read or two that would be mounted as one.
func ChartValues(o ChartOptions) (values map[string]any, notes []string, err error) {
	v := newChartValues(o.Read)
	for _, f := range o.Operators {
		if err := v.add(f); err != nil {
			return nil, nil, fmt.Errorf("operator %s: %w", f.Metadata.Name, err)
		}
	}
	for _, place := range o.Beside {
		if err := v.mount(filepath.Base(place), place); err != nil {
			return nil, nil, err
		}
	}
	values = map[string]any{"operatorFiles": v.operators}
	if len(v.files) > 0 {
		values["files"] = v.files
	}
	odd, err := oddKinds(o.Operators, o.Kinds)
	if err != nil {
		return nil, nil, err
	}
	if len(odd) > 0 {
		values["kinds"] = odd
	}
	converted, err := converted(o)
	if err != nil {
		return nil, nil, err
	}
	if len(converted) > 0 {
		values["conversion"] = converted
	}
	definitions := map[string]any{}
	for _, d := range o.Described {
		object := d.Object.DeepCopy()
		object.SetAnnotations(map[string]string{keepAnnotation: "keep"})
		text, err := yamltext.Of(object.Object)
		if err != nil {
			return nil, nil, fmt.Errorf("writing the CustomResourceDefinition of %s: %w", d.Kind.Kind, err)
		}
		definitions[object.GetName()] = text
	}
	if len(definitions) > 0 {
		values["crds"] = map[string]any{"definitions": definitions}
	}
	rights, err := Rights(o.Operators, RBACOptions{
		Kinds: o.Kinds, Conversions: o.Conversions, Process: Identity{"NAMESPACE", "SERVICEACCOUNT"},
	})
	if err != nil {
		return nil, nil, err
	}
	return values, rights.Notes, nil
}

// converted is the chart's value conversion: the definitions of the kinds that are converted.
func converted(o ChartOptions) (map[string]any, error) {
	lists := map[string]any{}
	for _, c := range o.Conversions {
		gr, _, err := Converted(o.Kinds, c)
		if err != nil {
			return nil, err
		}
		facts := map[string]bool{"crds": true, "verify": c.Publish == conversion.PublishVerify,
			"migrate": c.Migrate == conversion.MigrateAuto}
		for list, isIn := range facts {
			if isIn {
				names, _ := lists[list].([]any)
				lists[list] = append(names, gr.String())
			}
		}
	}
	return lists, nil
}

// chartValues gathers configs and the files that they name.
type chartValues struct {
	read             func(path string) ([]byte, error)
	flat             bool // all files stand beside the configs, none in a folder
	operators, files map[string]any
	from             map[string]string // where each of files comes from
}

func newChartValues(read func(path string) ([]byte, error)) *chartValues {
	return &chartValues{read: read, operators: map[string]any{}, files: map[string]any{}, from: map[string]string{}}
}

func (v *chartValues) add(f *load.File) error {
	text, err := v.read(f.Path)
	if err != nil {
		return fmt.Errorf("reading its config: %w", err)
	}
	renamed := map[string]string{}
	for _, name := range f.Named() {
		place, mounted := f.Place(name), besideName(name)
		if name != f.ConventionsFile {
			mounted = inFolder(mounted)
		}
		if v.flat {
			mounted = path.Base(mounted)
		}
		if err := v.mount(mounted, place); err != nil {
			return err
		}
		if mounted != path.Clean(filepath.ToSlash(name)) {
			renamed[name] = mounted
		}
	}
	if len(renamed) > 0 {
		if text, err = rename(text, renamed); err != nil {
			return fmt.Errorf("changing the names of files in its config: %w", err)
		}
	}
	v.operators[f.Metadata.Name] = string(text)
	return nil
}

// mount adds a file as one of the chart's files.
func (v *chartValues) mount(mounted, place string) error {
	if from, taken := v.from[mounted]; taken && from != place {
		return fmt.Errorf("%s and %s would both be mounted as %s: rename one of them", from, place, mounted)
	}
	content, err := v.read(place)
	if err != nil {
		return fmt.Errorf("reading a file to mount beside the configs: %w", err)
	}
	v.from[mounted], v.files[mounted] = place, string(content)
	return nil
}

// besideName is the name of a file within the directory of its config: the name itself, or its last part for one above.
func besideName(name string) string {
	clean := path.Clean(filepath.ToSlash(name))
	if path.IsAbs(clean) || filepath.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") {
		return path.Base(clean)
	}
	return clean
}

// inFolder is the name of a template where it is not read as a config: each *.yaml beside the configs is.
func inFolder(name string) string {
	if ext := path.Ext(name); !strings.Contains(name, "/") && (ext == ".yaml" || ext == ".yml") {
		return "templates/" + name
	}
	return name
}

// rename changes the names of files in the text of a config, comments kept.
func rename(text []byte, names map[string]string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	renameIn(&document, names)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("writing it: %w", err)
	}
	return out.Bytes(), nil
}

// namers are the keys of a config that name files.
var namers = []string{"templateFile", "helpersFile", "conventionsFile"}

func renameIn(n *yaml.Node, names map[string]string) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains(namers, n.Content[i-1].Value) {
			if to, ok := names[child.Value]; ok {
				child.Value = to
			}
		}
		renameIn(child, names)
	}
}

// oddKinds are the custom kinds that configs name of which the chart would guess another resource or scope, or a status
// subresource that is not there, as the chart's value kinds takes them. Kinds that source does not know are left out.
func oddKinds(files []*load.File, source kinds.Source) (map[string]any, error) {
	builtin, err := kinds.Offline()
	if err != nil {
		return nil, err
	}
	chart, odd := compile.WithDescribed(files, builtin), map[string]any{}
	for _, f := range files {
		for _, gvk := range f.Kinds() {
			known, err := source.Kind(gvk)
			if err != nil || kinds.IsBuiltin(gvk.GroupKind()) { // of built-in kinds the chart knows itself
				continue
			}
			guessed, _, err := findKind(chart, gvk)
			if err != nil {
				return nil, err
			}
			entry := map[string]any{}
			if guessed.GVR.Resource != known.GVR.Resource {
				entry["resource"] = known.GVR.Resource
			}
			if guessed.Namespaced != known.Namespaced {
				entry["namespaced"] = known.Namespaced
			}
			if !known.HasStatus {
				entry["status"] = false
			}
			if len(entry) > 0 {
				odd[gvk.GroupKind().String()] = entry
			}
		}
	}
	return odd, nil
}
